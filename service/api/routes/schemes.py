"""The catalogue of foreign schemes, and checks: of what is stored by one of them, and of struct types."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field
from starlette.responses import JSONResponse

from ninfer_core import __version__
from service import conditional, scheme_checks
from service.api import examples
from service.api.body import TextBody, document_body
from service.api.parameters import CallerParam, Paging, PartsParam, SchemeCheckId, SubmitCaller
from service.api.problems import describe
from service.api.schemas.base import PageOf
from service.api.schemas.scheme_checks import SchemeCheckRead, SchemeCheckWhole
from service.api.schemas.schemes import SchemeRead, SchemeWhole, StructRead, Verdict
from service.errors import (
    BodyTooLarge,
    InvalidRequest,
    MediaTypeUnsupported,
    SchemeCheckNotFound,
    SchemeNotFound,
    TooSlow,
)
from service.records.types import name_key

router = APIRouter(prefix="/v1", tags=["schemes"])
SchemeName = Annotated[
    str, Path(max_length=200, description="Of a scheme or of one of its forms.", examples=["gptq"])
]


class SchemePaging(Paging):
    """Schemes by what they are made of, and by a text in their names."""

    profile: str | None = Field(
        None, max_length=40, description="A kind of profile, as `codebook`.", examples=["codebook"]
    )
    match: str | None = Field(None, max_length=200, description="A text in a name, a title or a form.")


class SchemeCheckPaging(Paging):
    """Checks by the form and by what came of them."""

    form: str | None = Field(None, max_length=100)
    verdict: Verdict | None = None


@router.get("/schemes", summary="The catalogue of schemes", responses=describe(InvalidRequest))
def page(
    parts: PartsParam, caller: CallerParam, query: Annotated[SchemePaging, Query()]
) -> PageOf[SchemeRead]:
    """Quantization schemes of other tools. None of them is a format of a `.ninfer` file, whatever its name."""
    from service import schemes

    query.within(parts)
    found = schemes.page(limit=query.limit, cursor=query.cursor, profile=query.profile, match=query.match)
    return PageOf(items=[SchemeRead.model_validate(item) for item in found.items], next=found.next)


@router.get(
    "/schemes/{name}",
    summary="A scheme, or one form of it",
    response_model=SchemeWhole,
    responses={**conditional.DESCRIBED, **describe(SchemeNotFound, InvalidRequest)},
)
def one(
    request: Request,
    name: SchemeName,
    caller: CallerParam,
    shape: Annotated[
        str | None,
        Query(
            max_length=300, description="Sizes, layout and decoder for this shape.", examples=["4096x4096"]
        ),
    ] = None,
) -> Response:
    """What `ninfer-gate schemes show NAME --json` writes: parts, parameters, sizes, struct type, decoder and encoder as text."""
    from service import schemes

    document = schemes.document(name, shape)
    tag = f"schemes-{__version__}-{name_key(f'{name} {shape}')}"
    if same := conditional.unchanged(request, tag, forever=False):
        return same
    return JSONResponse(document, headers=conditional.headers(tag, forever=False))


@router.post(
    "/struct-checks",
    summary="Check a struct type or value",
    openapi_extra=document_body("A document of struct types, see docs/structs.md.", examples.STRUCT),
    responses=describe(TooSlow, BodyTooLarge, MediaTypeUnsupported),
)
def check_struct(parts: PartsParam, caller: SubmitCaller, text: TextBody) -> StructRead:
    """The body is the document. Every fault comes back as a finding, with the size and the leaves where there are none."""
    from ninfer_core.schemes.struct_checking import check_text, struct_json

    return StructRead.model_validate(struct_json(check_text(text, limits=parts.settings.struct_limits)))


@router.get("/scheme-checks", summary="Checks of schemes, newest first", responses=describe(InvalidRequest))
def checks(
    parts: PartsParam, caller: CallerParam, query: Annotated[SchemeCheckPaging, Query()]
) -> PageOf[SchemeCheckRead]:
    """What jobs of kind `scheme` were asked for, and what came of them."""
    query.within(parts)
    found = scheme_checks.page(
        parts,
        caller.project_id,
        limit=query.limit,
        cursor=query.cursor,
        form=query.form,
        verdict=query.verdict,
    )
    return PageOf(items=[SchemeCheckRead.of(view) for view in found.items], next=found.next)


@router.get(
    "/scheme-checks/{check}",
    summary="A check of a scheme",
    responses=describe(SchemeCheckNotFound, InvalidRequest),
)
def check(check: SchemeCheckId, parts: PartsParam, caller: CallerParam) -> SchemeCheckWhole:
    """With its document, once its job has an answer."""
    return SchemeCheckWhole.whole(scheme_checks.one(parts, caller.project_id, check))
