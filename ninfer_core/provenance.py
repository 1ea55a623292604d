"""The record of a conversion, `ninfer-gate/provenance-record/1`: what it read, by which rules, with what, and what came out.

Two kinds of statement are kept apart, source by source: what a recipe or a client *claims* (repository, revision,
licence), and what was *measured* here (name, size and digest of every file that was read). The core knows neither clock
nor machine: `Circumstances` are handed in, and hold no names of machines or people and no paths.
"""

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import rfc8785

from ninfer_core import __version__
from ninfer_core.convert.result import Conversion, Written
from ninfer_core.encoders import PROFILES
from ninfer_core.identity import FileDigest, artifact_digest
from ninfer_core.layouts import RESOURCE_ENCODING
from ninfer_core.locked import locked_digest
from ninfer_core.recipes.accounting import accounting_json
from ninfer_core.recipes.plan import Plan, ResourcePlan, TensorPlan
from ninfer_core.verify.report import finding_json

SCHEMA: Final = "ninfer-gate/provenance-record/1"
CHECKPOINT: Final = "checkpoint"  # kind of the listing whose digest a set of source files gets


@dataclass(frozen=True, slots=True)
class Circumstances:
    """How, on what and for how long a conversion ran."""

    command: str  # roles and names in place of paths
    environment: Mapping[str, str]  # versions of what computed
    host: Mapping[str, Any]  # the class of machine
    seconds: float


@dataclass(frozen=True, slots=True)
class Claim:
    """What a client said of a checkpoint when it was pushed; nothing of it was looked at."""

    repository: str | None
    revision: str | None
    license: str | None


@dataclass(frozen=True, slots=True)
class Read:
    """Every file that was read: of each role of the recipe, and each of its inputs."""

    sources: Mapping[str, Sequence[FileDigest]]
    inputs: Mapping[str, FileDigest]


def provenance_record(
    plan: Plan,
    conversion: Conversion,
    read: Read,
    circumstances: Circumstances,
    claims: Mapping[str, Claim] | None = None,
) -> dict[str, Any]:
    """The record of a conversion that was written, as strict JSON values; `claims` are by role."""
    recipe, target = plan.recipe, plan.target
    return {
        "schema": SCHEMA,
        "artifact": {
            "kind": "ninfer",
            "revision": conversion.revision,
            "identity": {"model_id": recipe.model_id, "weights_id": recipe.weights_id},
            "digest": conversion.digest,
            "content_root": conversion.content_root,
            "bytes": sum(file.bytes for file in conversion.files),
            "files": _files(conversion.files),
        },
        "recipe": {"recipe_id": recipe.recipe_id, "digest": recipe.digest},
        "target": None
        if target is None
        else {
            "key": target.key,
            "model_id": target.model_id,
            "weights_id": target.weights_id,
            "digest": target.digest,
            "inventory_sha256": target.inventory_sha256,
        },
        "encoder_profiles": _profiles(plan),
        "sources": {
            role: _source(plan, role, files, (claims or {}).get(role)) for role, files in read.sources.items()
        },
        "inputs": {
            name: {"measured": {"bytes": file.bytes, "sha256": file.sha256}}
            for name, file in read.inputs.items()
        },
        "objects": [_object(item) for item in conversion.objects],
        "accounting": accounting_json(conversion.accounting),
        "findings": [finding_json(finding) for finding in conversion.findings],
        "made": {
            "command": circumstances.command,
            "tool": {"name": "ninfer-gate", "version": __version__},
            "environment": dict(circumstances.environment),
            "host": dict(circumstances.host),
            "seconds": round(circumstances.seconds, 3),
        },
    }


def canonical(record: Mapping[str, Any]) -> bytes:
    """The record as it is stored and digested (RFC 8785)."""
    return rfc8785.dumps(dict(record))


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Versions of Python, of the kind of machine, and of these packages."""
    from importlib.metadata import version

    found = {name: version(name) for name in packages}
    return {"python": platform.python_version(), "machine": platform.machine(), **found}


def _files(files: Iterable[FileDigest]) -> list[dict[str, Any]]:
    return [{"name": file.name, "bytes": file.bytes, "sha256": file.sha256} for file in files]


def _source(plan: Plan, role: str, files: Sequence[FileDigest], claim: Claim | None) -> dict[str, Any]:
    stated = plan.recipe.sources[role]
    by_recipe = {"repository": stated.repository, "revision": stated.revision, "license": stated.license}
    by_client = None
    if claim is not None:
        by_client = {"repository": claim.repository, "revision": claim.revision, "license": claim.license}
    ordered = sorted(files, key=lambda file: file.name)
    return {
        "claimed": {"by_recipe": by_recipe, "by_client": by_client},
        "measured": {
            "digest": artifact_digest(CHECKPOINT, ordered),
            "bytes": sum(file.bytes for file in ordered),
            "files": _files(ordered),
        },
    }


def _profiles(plan: Plan) -> list[dict[str, Any]]:
    used = {item.encode for item in plan.objects if isinstance(item, TensorPlan)}
    return [
        {
            "name": profile.name,
            "version": profile.version,
            "semantic_digest": locked_digest(PROFILES.what, profile.name),
        }
        for profile in PROFILES
        if profile.name in used
    ]


def _object(item: Written) -> dict[str, Any]:
    plan = item.plan
    common = {
        "name": item.name,
        "bytes": item.bytes,
        "sha256": item.sha256,
        "identity": item.identity,
    }
    if isinstance(plan, ResourcePlan):
        return {
            **common,
            "kind": "resource",
            "encoding": RESOURCE_ENCODING,
            "encoder": "copy_bytes",
            "sources": [{"role": plan.role, "file": plan.file}],
            "evidence": "copied-exact",
        }
    return {
        **common,
        "kind": "tensor",
        "format": plan.fmt.name,
        "layout": plan.layout.name,
        "shape": list(plan.shape),
        "encoder": plan.maker,
        "moves": plan.tree,
        "sources": [{"role": role, "tensor": tensor} for role, tensor in plan.sources],
        "inputs": list(plan.inputs),
        "rescued_groups": item.rescued,
        "clamped_lanes": item.clamped,
        "evidence": plan.evidence_kind,
    }
