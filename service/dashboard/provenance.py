"""Pages of provenance: which artifacts come from something, where else a tensor lies, and where one object comes from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Path
from starlette.requests import Request
from starlette.responses import Response

from ninfer_core.encoders import PROFILES
from ninfer_core.formats import FORMATS
from service import object_provenance, provenance
from service.dashboard.access import Visiting
from service.dashboard.artifacts import Digest, Text, options
from service.dashboard.failures import PageRoute
from service.dashboard.origins import origins
from service.dashboard.render import page
from service.errors import InvalidRequest
from service.records.pages import Page
from service.records.provenance import KINDS, Basis, Derived

router = APIRouter(route_class=PageRoute)
FOUND: Final = 50


@dataclass(frozen=True, slots=True)
class Asked:
    """What the artifacts have to come from."""

    recipe: Text = None
    checkpoint: Text = None
    target: Text = None
    encoder_profile: Text = None
    format: Text = None
    tool_version: Text = None
    basis: Basis | None = None

    @property
    def conditions(self) -> dict[str, str]:
        """Those that are given, without the white space that comes along when something is pasted."""
        given = {kind: (getattr(self, kind) or "").strip() for kind in KINDS}
        return {name: value for name, value in given.items() if value}


@router.get("/provenance")
def search(
    visiting: Visiting, request: Request, asked: Annotated[Asked, Depends()], cursor: Text = None
) -> Response:
    """Artifacts by what they come from; without a condition only the form."""
    conditions = asked.conditions
    found: Page[Derived] | None = None
    wrong: InvalidRequest | None = None
    if conditions:
        try:
            found = provenance.reverse(
                visiting.parts,
                visiting.project_id,
                provenance.conditions(conditions),
                basis=asked.basis,
                limit=FOUND,
                cursor=cursor,
            )
        except InvalidRequest as error:
            wrong = error
    rows = [(item.artifact, origins(item.edges, {})) for item in found.items] if found is not None else []
    return page(
        request,
        "provenance.html",
        200 if wrong is None else wrong.status,
        wrong=wrong,
        asked=asked,
        found=found,
        rows=rows,
        profiles=options(PROFILES.names, asked.encoder_profile),
        formats=options(FORMATS.names, asked.format),
    )


@router.get("/tensors/{identity}")
def tensor(
    visiting: Visiting,
    request: Request,
    identity: Digest,
    cursor: Text = None,
) -> Response:
    """Where a tensor lies."""
    found = provenance.occurrences(visiting.parts, visiting.project_id, identity, limit=FOUND, cursor=cursor)
    return page(request, "tensor.html", identity=identity, found=found)


@router.get("/artifacts/{digest}/objects/{ordinal}")
def object_(
    visiting: Visiting,
    request: Request,
    digest: Digest,
    ordinal: Annotated[int, Path(ge=0, lt=2**31)],
) -> Response:
    """Where one object comes from."""
    document = object_provenance.at(visiting.parts, visiting.project_id, digest, ordinal)
    return page(request, "object.html", document=document, trees=_trees(document))


def _trees(document: Mapping[str, Any]) -> list[str]:
    """The moves of each origin as indented JSON."""
    return [
        json.dumps(origin["moves"], indent=1) if origin.get("moves") else "" for origin in document["origins"]
    ]
