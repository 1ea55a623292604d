"""Where one object comes from: its sources byte for byte, the moves, the encoder, and what runs found of it.

Nothing of this is stored: it is read off the recipe's document and the headers of the checkpoints when somebody asks.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy.orm import Session

from ninfer_core.errors import NinferError
from ninfer_core.findings import Findings
from ninfer_core.identity import DIGEST_PREFIX
from ninfer_core.recipes import Plan, ResourcePlan, TensorPlan, bind, parse_recipe
from service import targets
from service.artifacts import find
from service.blobs import BlobFiles, StoreAway
from service.errors import ObjectNotFound
from service.parts import Parts
from service.provenance import MOST_CONVERSIONS, MOST_RUNS, Canonical
from service.records import chain, content, identities, views
from service.records.models import Artifact, Conversion, Job, Object, Result, Run
from service.reports import object_json

SCHEMA: Final = "ninfer-gate/object-provenance/1"
_MOST_ORIGINS: Final = 4  # different pairs of recipe and checkpoints that are read for one answer

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Origin:
    """What a conversion used, or a run compared with: a recipe, its target, and where its sources lie."""

    basis: str  # converted, verified, or compared: against it, but without a proof
    id: str
    recipe: str
    target: str | None
    checkpoints: Mapping[str, str]  # role -> checkpoint id
    inputs: Mapping[str, str]  # name -> digest

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two of them the same."""
        given = (sorted(self.checkpoints.items()), sorted(self.inputs.items()))
        return self.recipe, self.target, *map(tuple, given)


@dataclass(frozen=True, slots=True)
class Material:
    """An origin with what the database knows of it."""

    origin: Origin
    document: str
    target: Any
    digests: Mapping[str, str]  # role -> digest of its checkpoint
    files: Mapping[str, Mapping[str, str]]  # role -> file name -> sha256


def document(parts: Parts, project_id: str, digest: str, name: str) -> Canonical:
    """The document of the object with this name, the first of them. Raises: ArtifactNotFound, ObjectNotFound."""
    artifact = find(parts, project_id, digest)
    with parts.database.read() as session:
        listed = content.objects(session, artifact.id, limit=1, name=name).items
    if not listed:
        raise ObjectNotFound(f"The artifact lists no object {name!r}.")
    return Canonical.of(_whole(parts, project_id, artifact, listed[0]))


def at(parts: Parts, project_id: str, digest: str, ordinal: int) -> Document:
    """The same of the object at a place of the directory, as plain JSON. Raises: ArtifactNotFound, ObjectNotFound."""
    artifact = find(parts, project_id, digest)
    with parts.database.read() as session:
        item = content.object_at(session, artifact.id, ordinal)
    if item is None:
        raise ObjectNotFound(f"The artifact lists no object number {ordinal}.")
    return _whole(parts, project_id, artifact, item)


def _whole(parts: Parts, project_id: str, artifact: Artifact, item: Object) -> Document:
    with parts.database.read() as session:
        made = chain.conversions(session, artifact.id, MOST_CONVERSIONS)
        runs = chain.runs(session, artifact.id, MOST_RUNS)
        results = chain.results(session, [run.id for run, _ in runs], item.ordinal)
        identity = identities.identity(session, artifact.id, item.ordinal)
        materials = [
            material
            for origin in _origins(session, made, runs, results)
            if (material := _material(session, project_id, origin)) is not None
        ]
    return {
        "schema": SCHEMA,
        "artifact": artifact.digest,
        "object": object_json(item),
        "identity": identity,
        "origins": [_told(parts, material, item) for material in materials],
        "runs": [_result(run, results[run.id]) for run, _ in runs if run.id in results],
    }


def _origins(
    session: Session,
    made: Sequence[tuple[Conversion, Job]],
    runs: Sequence[tuple[Run, Job]],
    results: Mapping[str, Result],
) -> list[Origin]:
    """Each once: the conversion that made it before the runs that compared it, and proofs before attempts."""
    found = [
        Origin("converted", row.id, row.recipe_digest, row.target_digest, row.checkpoints, row.inputs)
        for row, _ in made
    ]
    compared = []
    for run, job in runs:
        if run.recipe_digest is None or not run.checkpoints or run.id not in results:
            continue
        basis = "verified" if results[run.id].evidence is not None else "compared"
        inputs = job.request.get("inputs") or {}
        compared.append(Origin(basis, run.id, run.recipe_digest, run.target_digest, run.checkpoints, inputs))
    found += sorted(compared, key=lambda origin: origin.basis != "verified")
    first: dict[tuple[object, ...], Origin] = {}
    for origin in found:
        first.setdefault(origin.key, origin)
    return list(first.values())[:_MOST_ORIGINS]


def _material(session: Session, project_id: str, origin: Origin) -> Material | None:
    recipe = content.recipe(session, project_id, origin.recipe)
    if recipe is None:
        return None
    rows = views.checkpoints(session, project_id, set(origin.checkpoints.values()))
    digests = {id_: row.digest for id_, row in rows.items()}
    files = chain.checkpoint_files(session, digests)
    target = targets.contract(session, project_id, origin.target) if origin.target is not None else None
    return Material(
        origin,
        recipe.document,
        target,
        {role: digests[id_] for role, id_ in origin.checkpoints.items() if id_ in digests},
        {
            role: {file.name: file.sha256 for file in files.get(id_, ())}
            for role, id_ in origin.checkpoints.items()
        },
    )


def _told(parts: Parts, material: Material, item: Object) -> Document:
    origin = material.origin
    told: Document = {
        "basis": origin.basis,
        "conversion" if origin.basis == "converted" else "run": origin.id,
        "recipe": origin.recipe,
        "target": origin.target,
        "checkpoints": dict(material.digests),
    }
    with ExitStack() as stack:
        plan = _plan(parts, stack, material)
        if plan is None:
            return {**told, "unread": "the recipe and its sources can no longer be put together"}
        own = next((each for each in plan.objects if each.name == item.name), None)
        if own is None:
            return {**told, "unread": "the recipe does not make this object"}
        if isinstance(own, ResourcePlan):
            return {**told, **_resource(own, material)}
        return {**told, **_tensor(own, plan, material)}


def _plan(parts: Parts, stack: ExitStack, material: Material) -> Plan | None:
    recipe = parse_recipe(material.document.encode(), Findings(), target=material.target)
    if recipe is None:
        return None
    folders = {role: BlobFiles(parts.blobs, files) for role, files in material.files.items()}
    given = {name: digest.removeprefix(DIGEST_PREFIX) for name, digest in material.origin.inputs.items()}
    inputs = BlobFiles(parts.blobs, given)
    for files in (*folders.values(), inputs):
        stack.callback(files.close)
    try:
        opened = {name: inputs.open(name) for name in inputs.names}
        return bind(recipe, folders, opened, Findings())
    except StoreAway:
        raise  # that is no answer
    except NinferError:  # content that was lost, or is not what it was
        return None


def _tensor(own: TensorPlan, plan: Plan, material: Material) -> Document:
    sources = []
    for role, name in own.sources:
        tensor = plan.checkpoints[role].tensors[name]
        sources.append(
            {
                "role": role,
                "tensor": name,
                "dtype": tensor.dtype,
                "shape": list(tensor.shape),
                "file": tensor.file,
                "file_digest": DIGEST_PREFIX + material.files[role][tensor.file],
                "begin": tensor.offset,
                "end": tensor.offset + tensor.bytes,
            }
        )
    producer = own.producer
    return {
        "rule": own.rule,
        "moves": dict(own.tree),
        "sources": sources,
        "inputs": {name: material.origin.inputs.get(name) for name in own.inputs},
        "encoder": own.encode,
        "producer": None if producer is None else {"name": producer.name, "version": producer.version},
        "evidence_at_best": own.evidence_kind,
    }


def _resource(own: ResourcePlan, material: Material) -> Document:
    if own.role is None:
        digest = material.origin.inputs.get(own.file)
    else:
        digest = DIGEST_PREFIX + material.files[own.role][own.file]
    source = {"role": own.role, "file": own.file, "file_digest": digest, "begin": 0, "end": own.source.size}
    return {"rule": own.rule, "moves": None, "sources": [source], "encoder": "copy_bytes"}


def _result(run: Run, result: Result) -> Document:
    return {
        "run": run.id,
        "verdict": run.verdict,
        "outcome": result.outcome,
        "coverage": result.coverage,
        "reused_from": result.reused_run_id,
        "evidence": result.evidence,
        "sha256": result.sha256,
        "identity": result.identity,
        "error": (result.metrics or {}).get("error"),
        "finished_at": None if run.finished_at is None else run.finished_at.isoformat(),
    }
