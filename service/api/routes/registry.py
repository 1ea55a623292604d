"""The registries: formats, and the encoder profiles that were held here."""

from datetime import datetime

from fastapi import APIRouter, Request, Response
from pydantic import Field
from starlette.responses import JSONResponse

from ninfer_core import __version__
from ninfer_core.encoders import PROFILES
from ninfer_core.format_facts import formats_json
from service import conditional
from service.api.parameters import CallerParam, PartsParam
from service.api.schemas.base import Answer, Digest
from service.records import content
from service.records.models import EncoderProfile

router = APIRouter(prefix="/v1", tags=["registries"])


class FormatRead(Answer):
    """One format."""

    name: str
    category: str
    meaning: str
    layout: str
    logical_bits_per_weight: float
    codes: str
    scales: str
    shapes: str


class FormatsRead(Answer):
    """The document `ninfer-gate/formats/1`."""

    schema_: str = Field(alias="schema")
    formats: list[FormatRead]


class ProfileRead(Answer):
    """An encoder profile, with digests of what it means; `formats` is empty for one that this version no longer holds."""

    name: str
    version: int
    formats: list[str]
    specification: str
    specification_digest: Digest
    vectors_digest: Digest
    semantic_digest: Digest | None = Field(description="Of its meaning, as the registry lock has it.")
    implementation_digest: Digest | None = Field(description="Of the source text that last made it here.")
    first_seen_at: datetime


class ProfilesRead(Answer):
    """Every encoder profile."""

    items: list[ProfileRead]


@router.get(
    "/formats",
    summary="The registry of formats",
    response_model=FormatsRead,
    responses=conditional.DESCRIBED,
)
def formats(request: Request, caller: CallerParam) -> Response:
    """What `ninfer-gate formats --json` writes. It changes with the version of the service, and so does its tag."""
    tag = f"formats-{__version__}"
    if same := conditional.unchanged(request, tag, forever=False):
        return same
    return JSONResponse(formats_json(), headers=conditional.headers(tag, forever=False))


@router.get("/encoder-profiles", summary="The registry of encoder profiles")
def encoder_profiles(parts: PartsParam, caller: CallerParam) -> ProfilesRead:
    """Those of this version and of earlier ones that used this database."""
    with parts.database.read() as session:
        rows = content.profiles(session)
    return ProfilesRead(items=[_profile(row) for row in rows])


def _profile(row: EncoderProfile) -> ProfileRead:
    held = [profile for profile in PROFILES if (profile.name, profile.version) == (row.name, row.version)]
    return ProfileRead(
        name=row.name,
        version=row.version,
        formats=[fmt.name for profile in held for fmt in profile.formats],
        specification=row.specification,
        specification_digest=row.specification_digest,
        vectors_digest=row.vectors_digest,
        semantic_digest=row.semantic_digest,
        implementation_digest=row.implementation_digest,
        first_seen_at=row.first_seen_at,
    )
