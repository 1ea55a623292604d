"""Where an artifact comes from: its whole chain as one canonical document, and the questions asked the other way round.

What an artifact or a client says of an origin is a claim and stays one, under `claims` and `claimed`. Measured are
digests of files, what a conversion here did, and what a run here compared; only the latter makes anything `verified`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

import rfc8785
from sqlalchemy.orm import Session

from ninfer_core.encoders import PROFILES
from ninfer_core.formats import FORMATS
from ninfer_core.identity import DIGEST_PREFIX, canonical_digest
from ninfer_core.retired import retirement
from ninfer_core.sources.dtypes import DTYPES
from service import targets
from service.artifacts import find
from service.errors import Fault, InvalidRequest
from service.parts import Parts
from service.records import chain, content, identities, provenance, views
from service.records.identities import Occurrence
from service.records.models import (
    Artifact,
    Checkpoint,
    CheckpointFile,
    Conversion,
    Edge,
    EncoderProfile,
    Job,
    Recipe,
    Run,
)
from service.records.pages import Page
from service.records.provenance import Basis, Derived, Kind

SCHEMA: Final = "ninfer-gate/provenance/1"
MOST_RUNS: Final = 100  # the latest; `runs_in_all` counts the others
MOST_CONVERSIONS: Final = 20

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Canonical:
    """A document in its RFC 8785 form; `digest` is of just these bytes."""

    text: bytes
    digest: str

    @classmethod
    def of(cls, document: Document) -> "Canonical":
        """Of plain JSON."""
        return cls(rfc8785.dumps(document), canonical_digest(document))


def artifact(parts: Parts, project_id: str, digest: str) -> Canonical:
    """The whole chain of an artifact. Raises: ArtifactNotFound."""
    return Canonical.of(document(parts, project_id, digest))


def document(parts: Parts, project_id: str, digest: str) -> Document:
    """The same as plain JSON. Raises: ArtifactNotFound."""
    found = find(parts, project_id, digest)
    with parts.database.read() as session:
        made = chain.conversions(session, found.id, MOST_CONVERSIONS)
        runs = chain.runs(session, found.id, MOST_RUNS)
        edges = provenance.of_artifact(session, found.id)
        return {
            "schema": SCHEMA,
            "artifact": _artifact(session, found, runs),
            "claims": found.claims,
            "facts": [fact(edge) for edge in edges],
            "conversions": [_conversion(row, job) for row, job in made],
            "runs": [_run(row, job) for row, job in runs],
            "runs_in_all": chain.run_count(session, found.id),
            **_named(session, project_id, made, runs, edges),
        }


def reverse(
    parts: Parts,
    project_id: str,
    conditions: Mapping[Kind, str],
    *,
    basis: Basis | None,
    limit: int,
    cursor: str | None,
) -> Page[Derived]:
    """Artifacts for which every condition holds, newest first; a checkpoint is named by its digest or its id.

    Raises: InvalidRequest without a condition, or for a profile or format that nobody knows, BadCursor.
    """
    if not conditions:
        fault = Fault("query", "recipe", f"give at least one of {', '.join(provenance.KINDS)}")
        raise InvalidRequest("Nothing was asked for.", fault)
    with parts.database.read() as session:
        require_known(session, project_id, conditions)
        wanted = dict(conditions)
        given = wanted.get("checkpoint", "")
        if given and not given.startswith(DIGEST_PREFIX):
            wanted["checkpoint"] = chain.digest_of(session, project_id, given) or given
        return provenance.derived(session, project_id, wanted, basis=basis, limit=limit, cursor=cursor)


def require_known(session: Session, project_id: str, conditions: Mapping[Kind, str]) -> None:
    """A slip of the pen may not read as "nothing comes from it".

    Known is what is registered, what once was, and what this project knows a fact about. Raises: InvalidRequest.
    """
    for kind, (registry, registered) in _NAMED.items():
        name = conditions.get(kind)
        if name is None or name in registered or retirement(registry, name) is not None:
            continue
        if provenance.is_known(session, project_id, kind, name):
            continue
        known = ", ".join(registered)
        fault = Fault(
            "query", kind, f"not registered, never retired, and no artifact here has it; known are {known}"
        )
        raise InvalidRequest(f"No such {registry}: {name}.", fault)


_NAMED: Final[Mapping[Kind, tuple[str, tuple[str, ...]]]] = {
    "encoder_profile": (PROFILES.what, PROFILES.names),
    "format": (FORMATS.what, (*FORMATS.names, *(name for name in DTYPES.names if name not in FORMATS))),
}


def occurrences(
    parts: Parts, project_id: str, identity: str, *, limit: int, cursor: str | None
) -> Page[Occurrence]:
    """Where a tensor lies, the oldest artifact first. Raises: BadCursor."""
    with parts.database.read() as session:
        return identities.occurrences(session, project_id, identity, limit=limit, cursor=cursor)


def fact(edge: Edge) -> Document:
    """One edge as documents and pages tell it."""
    told: Document = {"kind": edge.kind, "value": edge.value, "basis": edge.basis}
    if edge.role:
        told["role"] = edge.role
    if edge.basis != "claimed":
        told["conversion" if edge.basis == "converted" else "run"] = edge.origin_id
    return told


def _artifact(session: Session, row: Artifact, runs: Sequence[tuple[Run, Job]]) -> Document:
    told = [run.report["artifact"] for run, _ in runs if run.report]
    # Of runs that saw these very bytes: one that found others on the disk says nothing of this artifact.
    root = next(
        (one["content_root"] for one in told if one.get("digest") == row.digest and one.get("content_root")),
        None,
    )
    return {
        "digest": row.digest,
        "kind": row.kind,
        "bytes": row.bytes,
        "origin": row.origin,
        "revision": row.revision,
        "identity": {"model_id": row.model_id, "weights_id": row.weights_id},
        "content_root": root,
        "objects": row.object_count,
        "files": [_file(file) for file in content.files(session, row.id)],
    }


def _file(row: Any) -> Document:
    return {"name": row.name, "bytes": row.bytes, "digest": DIGEST_PREFIX + row.sha256}


def _conversion(row: Conversion, job: Job) -> Document:
    return {
        "id": row.id,
        "verdict": row.verdict,
        "recipe": row.recipe_digest,
        "target": row.target_digest,
        "checkpoints": row.checkpoints,
        "inputs": row.inputs,
        "output": row.output,
        "command": row.command,
        "versions": (row.document or {}).get("versions"),
        "environment": row.environment,
        "host": row.host,
        "seconds": _seconds(job),
        "finished_at": _moment(row.finished_at),
    }


def _run(row: Run, job: Job) -> Document:
    report = row.report or {}
    return {
        "id": row.id,
        "verdict": row.verdict,
        "checks": {
            check["name"]: {"outcome": check["outcome"], "coverage": check["coverage"]}
            for check in report.get("checks", ())
        },
        "coverage": report.get("coverage"),
        "recipe": row.recipe_digest,
        "target": row.target_digest,
        "canonical": row.canonical,
        "sample": report.get("sample"),
        "checkpoints": row.checkpoints or {},
        "versions": report.get("versions"),
        "seconds": _seconds(job),
        "finished_at": _moment(row.finished_at),
    }


def _named(
    session: Session,
    project_id: str,
    made: Sequence[tuple[Conversion, Job]],
    runs: Sequence[tuple[Run, Job]],
    edges: Sequence[Edge],
) -> Document:
    """What conversions and runs name, each told once."""
    both: list[Conversion | Run] = [row for row, _ in made]
    both += [row for row, _ in runs]
    recipes = chain.recipes(session, project_id, {row.recipe_digest for row in both if row.recipe_digest})
    digests = {row.target_digest for row in (*both, *recipes) if row.target_digest}
    known = [targets.listed(session, project_id, digest) for digest in sorted(digests)]
    ids = {id_ for row in both for id_ in (row.checkpoints or {}).values()}
    files = chain.checkpoint_files(session, ids)
    profiles = {edge.value for edge in edges if edge.kind == "encoder_profile" and edge.basis != "claimed"}
    return {
        "recipes": [_recipe(row) for row in recipes],
        "targets": [_target(target) for target in known if target is not None],
        "checkpoints": [
            _checkpoint(row, files.get(row.id, []), edges)
            for _, row in sorted(views.checkpoints(session, project_id, ids).items())
        ],
        "encoder_profiles": [_profile(row) for row in chain.profiles(session, profiles)],
    }


def _recipe(row: Recipe) -> Document:
    return {
        "digest": row.digest,
        "recipe_id": row.recipe_id,
        "identity": {"model_id": row.model_id, "weights_id": row.weights_id},
        "target": row.target_digest,
    }


def _target(target: targets.Listed) -> Document:
    return {
        "digest": target.digest,
        "identity": {"model_id": target.model_id, "weights_id": target.weights_id},
        "inventory_sha256": target.inventory_sha256,
        "objects": target.objects,
        "registered": target.registered,
    }


def _checkpoint(row: Checkpoint, files: Sequence[CheckpointFile], edges: Sequence[Edge]) -> Document:
    """`files` are measured; `claimed` is what a client said; `verified` names roles and the runs that proved them."""
    verified = {
        edge.role: edge.origin_id
        for edge in edges
        if (edge.kind, edge.basis, edge.value) == ("checkpoint", "verified", row.digest)
    }
    return {
        "id": row.id,
        "digest": row.digest,
        "bytes": row.bytes,
        "files": [_file(file) for file in files],
        "claimed": {"repository": row.repository, "revision": row.revision, "license": row.license},
        "verified": verified,
    }


def _profile(row: EncoderProfile) -> Document:
    return {
        "name": row.name,
        "version": row.version,
        "specification": row.specification,
        "specification_digest": row.specification_digest,
        "vectors_digest": row.vectors_digest,
        "semantic_digest": row.semantic_digest,
        "implementation_digest": row.implementation_digest,
    }


def _seconds(job: Job) -> float | None:
    if job.started_at is None or job.finished_at is None:
        return None
    return round((job.finished_at - job.started_at).total_seconds(), 3)


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def conditions(given: Mapping[str, str | None]) -> dict[Kind, str]:
    """Those that were given."""
    return {cast(Kind, kind): value for kind, value in given.items() if value}
