"""Pages of artifacts: the list, and one with its runs, its objects and how it was made."""

from collections.abc import Iterable
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import Response

from ninfer_core.formats import FORMATS
from ninfer_core.identity import DIGEST_PREFIX
from ninfer_core.layouts import LAYOUTS
from ninfer_core.sources.dtypes import DTYPES
from service import conditional, contents, targets
from service.dashboard.access import Visiting
from service.dashboard.against import against
from service.dashboard.compared import of_artifact
from service.dashboard.failures import PageRoute, missing
from service.dashboard.origins import chain_of
from service.dashboard.render import HEADERS, page
from service.dashboard.verdicts import Seen, shown
from service.download import stored_content
from service.records import chain, content, conversions, provenance, runs, views
from service.records.models import Artifact, Conversion

router = APIRouter(route_class=PageRoute)
ARTIFACTS, OBJECTS, RUNS, PASSES = 50, 100, 10, 100
Text = Annotated[
    str | None, Query(max_length=1_200)
]  # findings name an object in up to a thousand characters and some
Word = Annotated[str | None, Query(pattern=r"^[a-z0-9_.]{1,100}$")]
Digest = Annotated[str, Path(pattern="^sha256:[0-9a-f]{64}$")]
Kind = Literal["ninfer", "safetensors"]
ObjectKind = Literal["tensor", "resource"]


@router.get("/")
def artifacts(
    visiting: Visiting, request: Request, q: Text = None, kind: Kind | None = None, cursor: Text = None
) -> Response:
    """The artifacts, newest first."""
    with visiting.parts.database.read() as session:
        listed = content.artifacts(
            session,
            visiting.project_id,
            limit=ARTIFACTS,
            cursor=cursor,
            kind=kind,
            q=(q or "").strip() or None,
        )
        last = views.last_runs(session, [row.id for row in listed.items])
    return page(
        request,
        "artifacts.html",
        listed=listed,
        last=last,
        marks={id_: shown(latest.state, latest.run.report) for id_, latest in last.items()},
        q=q,
        kind=kind,
        base=str(request.base_url).rstrip("/"),
    )


@router.get("/artifacts/{digest}")
def artifact(
    visiting: Visiting,
    request: Request,
    digest: Digest,
    kind: ObjectKind | None = None,
    format: Text = None,  # noqa: A002  the member of the address
    layout: Text = None,
    name: Text = None,
    cursor: Text = None,
) -> Response:
    """One artifact; `name` finds the objects whose names begin with it."""
    with visiting.parts.database.read() as session:
        found = content.find_artifact(session, visiting.project_id, digest)
        if found is None:
            raise missing("artifact")
        seen = _runs(session, visiting.project_id, found)
        run_count = chain.run_count(session, found.id)
        strongest = _strongest(session, visiting.project_id, found)
        objects = content.objects(
            session,
            found.id,
            limit=OBJECTS,
            cursor=cursor,
            kind=kind,
            format=format,
            layout=layout,
            prefix=name,
        )
        files = content.files(session, found.id)
        made = _made(session, visiting.project_id, found)
        compared = of_artifact(session, found, RUNS)
        origin = chain_of(session, visiting.project_id, found)
    return page(
        request,
        "artifact.html",
        artifact=found,
        files=files,
        runs=seen,
        run_count=run_count,
        strongest=strongest,
        objects=objects,
        made=made,
        compared=compared,
        chain=origin,
        filters={"kind": kind, "format": format, "layout": layout, "name": name},
        formats=formats_of(found.kind, format),
        layouts=options((entry.name for entry in LAYOUTS), layout) if found.kind == "ninfer" else [],
        base=str(request.base_url).rstrip("/"),
    )


@router.get("/artifacts/{digest}/files/{ordinal}")
def file(visiting: Visiting, request: Request, digest: Digest, ordinal: int) -> Response:
    """One file of an artifact, to keep."""
    with visiting.parts.database.read() as session:
        found = content.find_artifact(session, visiting.project_id, digest)
        files = content.files(session, found.id) if found is not None else []
    wanted = next((row for row in files if row.ordinal == ordinal), None)
    if wanted is None:
        raise missing("file")
    contents.find_blob(visiting.parts, visiting.project_id, DIGEST_PREFIX + wanted.sha256)
    headers = {**HEADERS, **conditional.headers(wanted.sha256)}
    return stored_content(request, visiting.parts.blobs, wanted.sha256, wanted.bytes, headers, wanted.name)


def formats_of(kind: str, chosen: str | None) -> list[str]:
    """The formats that objects of such an artifact may have, to choose from."""
    return options(FORMATS.names if kind == "ninfer" else DTYPES.names, chosen)


def options(known: Iterable[str], chosen: str | None) -> list[str]:
    """What a person may choose, and what the address chose even if it is nothing known."""
    names = list(known)
    return names if chosen is None or chosen in names else [*names, chosen]


def _runs(session: Session, project_id: str, artifact: Artifact) -> list[Seen]:
    listed = runs.runs(session, project_id, artifact_id=artifact.id, limit=RUNS, cursor=None).items
    jobs = views.jobs(session, project_id, [run.job_id for run in listed])
    words = against(session, project_id, listed)
    return [Seen(run, jobs[run.job_id], artifact, words[run.job_id]) for run in listed]


def _strongest(session: Session, project_id: str, artifact: Artifact) -> Seen | None:
    """The latest run that passed and compared every word with its source by itself."""
    for run, job in chain.runs(session, artifact.id, PASSES, verdict="passed"):
        report = run.report or {}
        coverage = {check["name"]: check["coverage"] for check in report.get("checks", ())}
        whole = report.get("coverage", {}).get("objects", {})
        if coverage.get("parity") == "full" and whole["full"] == whole["total"]:
            return Seen(run, job, artifact, against(session, project_id, [run])[job.id])
    return None


def _made(session: Session, project_id: str, artifact: Artifact) -> dict[str, object] | None:
    conversion = conversions.by_artifact(session, artifact.id)
    return None if conversion is None else making(session, project_id, conversion)


def making(session: Session, project_id: str, conversion: Conversion) -> dict[str, object]:
    """What a conversion was made of: its recipe by name, its checkpoints by role."""
    checkpoints = views.checkpoints(session, project_id, conversion.checkpoints.values())
    names = views.recipe_ids(session, project_id, [conversion.recipe_digest])
    target = conversion.target_digest
    return {
        "conversion": conversion,
        "recipe_id": names.get(conversion.recipe_digest),
        "checkpoints": {role: checkpoints.get(id_) for role, id_ in conversion.checkpoints.items()},
        "profiles": _profiles(session, conversion),
        "target": targets.listed(session, project_id, target) if target is not None else None,
    }


def _profiles(session: Session, conversion: Conversion) -> dict[str, int]:
    """The encoder profiles that made objects of what it wrote, with their versions."""
    known = (conversion.document or {}).get("versions", {}).get("encoder_profiles", {})
    edges = provenance.of_artifact(session, conversion.artifact_id) if conversion.artifact_id else []
    used = {edge.value for edge in edges if (edge.kind, edge.basis) == ("encoder_profile", "converted")}
    return {name: version for name, version in known.items() if name in used}
