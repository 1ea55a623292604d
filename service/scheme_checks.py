"""Checks of stored arrays against a scheme of the catalogue, and of payloads against struct types: asked for, looked at.

The names of the catalogue stay here: none of them is a format, a layout, or anything that a recipe could name.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

from sqlalchemy.orm import Session

from ninfer_core.errors import UnknownName, Usage
from ninfer_core.identity import DIGEST_PREFIX
from ninfer_core.sources.json_text import json_path
from service.contents import held_content
from service.errors import BlobsMissing, Fault, InvalidRequest, SchemeCheckNotFound
from service.parts import Parts
from service.records import scheme_checks
from service.records.models import Job, SchemeCheck
from service.records.pages import Page

ArrayKind = Literal["npy", "raw"]
ArchiveKind = Literal["safetensors", "npz"]
ANSWERED: Final = ("passed", "failed", "incomplete")  # states of a job whose check could be made


@dataclass(frozen=True, slots=True)
class Stored:
    """One part: content that is a `.npy` file, or its bytes alone."""

    digest: str
    kind: ArrayKind = "npy"


@dataclass(frozen=True, slots=True)
class Archive:
    """Content that holds several arrays; those whose names begin with `prefix` are the parts."""

    digest: str
    kind: ArchiveKind = "safetensors"
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class CheckScheme:
    """Check the parts of a form, held against `reference` and `source` where given; or `struct`, a document, and a payload.

    A reference holds what a decoder has to give, up to `within` apart; a source the values before quantization.
    """

    type: ClassVar[Literal["scheme"]] = "scheme"
    form: str | None = None
    parts: Mapping[str, Stored] = field(default_factory=dict)
    archive: Archive | None = None
    shape: tuple[int, ...] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    reference: str | None = None
    within: float = 0.0
    source: str | None = None
    struct: str | None = None
    payload: str | None = None


@dataclass(frozen=True, slots=True)
class SchemeCheckView:
    """A check with its job."""

    check: SchemeCheck
    job: Job

    @property
    def answered(self) -> bool:
        """Whether there is a document: an answer counts only as that of its job."""
        return self.check.verdict is not None and self.job.state in ANSWERED


def digests(request: CheckScheme) -> list[str]:
    """Of every content that it names."""
    return [digest for _, digest in _named(request)]


def settled(
    parts: Parts, session: Session, project_id: str, request: CheckScheme, lost: frozenset[str]
) -> dict[str, Any]:
    """The request as the workflow reads it; `lost` is `contents.lost` of its digests. Raises: InvalidRequest, BlobsMissing."""
    whole = _of_struct(request) if request.struct is not None else _of_form(request)
    named = dict(_named(request))
    held = held_content(session, project_id, named.values(), lost)
    faults = [
        Fault("body", path, f"this project does not hold {digest}")
        for path, digest in named.items()
        if digest.removeprefix(DIGEST_PREFIX) not in held
    ]
    if faults:
        raise BlobsMissing(f"{len(faults)} of {len(named)} digests have no content here.", *faults)
    size = sum(held[digest.removeprefix(DIGEST_PREFIX)].bytes for digest in named.values())
    if size > parts.settings.max_check_bytes:
        why = (
            f"one check reads at most {parts.settings.max_check_bytes:,} bytes, and this would read {size:,}"
        )
        raise InvalidRequest("There is too much to be read at once.", Fault("body", "$", why))
    return {"type": request.type, **whole}


def _named(request: CheckScheme) -> Iterator[tuple[str, str]]:
    """Every digest of a request, with its place there."""
    for name, part in request.parts.items():
        yield json_path(("parts", name, "digest")), part.digest
    if request.archive is not None:
        yield "$.archive.digest", request.archive.digest
    for member in ("reference", "source", "struct", "payload"):
        digest = getattr(request, member)
        if digest is not None:
            yield f"$.{member}", digest


def _of_struct(request: CheckScheme) -> dict[str, Any]:
    given = [
        name
        for name in ("form", "parts", "archive", "shape", "params", "reference", "within", "source")
        if getattr(request, name) not in (None, {}, 0.0)
    ]
    if given:
        faults = [Fault("body", f"$.{name}", "a struct type has none") for name in given]
        raise InvalidRequest("A check is of a form's parts or of a struct type, not of both.", *faults)
    return {"struct": request.struct, "payload": request.payload}


def _of_form(request: CheckScheme) -> dict[str, Any]:
    from ninfer_core.schemes.catalogue import near
    from ninfer_core.schemes.catalogue.forms import form_of
    from ninfer_core.schemes.run import SchemeRefused, complete

    if request.form is None:
        fault = Fault("body", "$.form", "name a form of GET /v1/schemes, or give `struct`")
        raise InvalidRequest("Nothing says what is to be checked.", fault)
    try:
        form = form_of(request.form)
    except UnknownName as unknown:
        hint = " or ".join(near(request.form))
        why = str(unknown) + (f"; did you mean {hint}?" if hint else "")
        raise InvalidRequest("There is no such form.", Fault("body", "$.form", why)) from unknown
    except Usage as several:
        raise InvalidRequest("A check is of one form.", Fault("body", "$.form", str(several))) from several
    faults = []
    if request.payload is not None:
        faults.append(
            Fault("body", "$.payload", "it belongs to `struct`; a form has `parts` or an `archive`")
        )
    if (request.archive is None) == (not request.parts):
        faults.append(Fault("body", "$.parts", "give the parts one by one, or an archive that holds them"))
    known = ", ".join(part.name for part in form.parts)
    faults += [
        Fault("body", json_path(("parts", name)), f"{form.name} has no such part; it has {known}")
        for name in request.parts
        if all(name != part.name for part in form.parts)
    ]
    if request.within and request.reference is None:
        faults.append(Fault("body", "$.within", "it is about a reference, and none is named"))
    try:
        complete(form, request.params)
    except SchemeRefused as refused:
        faults += [
            Fault("body", json_path(("params", finding.where.get("parameter", ""))), finding.message)
            for finding in refused.findings
        ]
    if faults:
        raise InvalidRequest(f"{form.name} cannot be checked so.", *faults)
    archive = request.archive
    return {
        "form": form.name,
        "parts": {name: {"digest": part.digest, "kind": part.kind} for name, part in request.parts.items()},
        "archive": None
        if archive is None
        else {"digest": archive.digest, "kind": archive.kind, "prefix": archive.prefix},
        "shape": None if request.shape is None else list(request.shape),
        "params": dict(request.params),
        "reference": request.reference,
        "within": request.within,
        "source": request.source,
    }


def page(
    parts: Parts,
    project_id: str,
    *,
    limit: int,
    cursor: str | None,
    form: str | None = None,
    verdict: str | None = None,
) -> Page[SchemeCheckView]:
    """Newest first, without documents. Raises: BadCursor."""
    with parts.database.read() as session:
        found = scheme_checks.page(
            session, project_id, limit=limit, cursor=cursor, form=form, verdict=verdict
        )
        return Page(viewed(session, found.items), found.next)


def one(parts: Parts, project_id: str, id_: str) -> SchemeCheckView:
    """With its document. Raises: SchemeCheckNotFound."""
    with parts.database.read() as session:
        check = scheme_checks.get(session, project_id, id_)
        if check is None:
            raise SchemeCheckNotFound(f"This project never had a check {id_} of a scheme.")
        return viewed(session, [check])[0]


def viewed(session: Session, checks: Collection[SchemeCheck]) -> list[SchemeCheckView]:
    """Checks with their jobs."""
    held = scheme_checks.jobs_of(session, checks)
    return [SchemeCheckView(check, held[check.job_id]) for check in checks]
