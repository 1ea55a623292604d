"""What a conversion did, as one value that every face of it is made from: schema `ninfer-gate/conversion/1`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ninfer_core.findings import Finding
from ninfer_core.identity import FileDigest, artifact_digest
from ninfer_core.kernels.processor import Produced, nothing_ran, produced_json
from ninfer_core.recipes.accounting import Accounting, accounting_json, unused_sources
from ninfer_core.recipes.plan import ResourcePlan, TensorPlan
from ninfer_core.verify.report import finding_json, versions

SCHEMA = "ninfer-gate/conversion/1"


@dataclass(slots=True)
class Written:
    """One object of the output; `rescued` groups and `clamped` lanes are what the encoder had to bend."""

    name: str
    plan: TensorPlan | ResourcePlan
    offset: int
    bytes: int
    sha256: str | None = None
    identity: str | None = None
    rescued: int = 0
    clamped: int = 0
    kernels: Produced = field(default_factory=nothing_ran)


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion did; `written` is False when findings refused it, and then no file may get a name."""

    written: bool
    revision: int
    recipe: str
    findings: tuple[Finding, ...]
    objects: tuple[Written, ...]
    files: tuple[FileDigest, ...]
    content_root: str | None
    accounting: Accounting

    @property
    def digest(self) -> str | None:
        """The artifact's digest."""
        return artifact_digest("ninfer", self.files) if self.files else None

    def as_json(self) -> dict[str, Any]:
        """Strict JSON values, schema `ninfer-gate/conversion/1`."""
        return {
            "schema": SCHEMA,
            "verdict": "written" if self.written else "refused",
            "artifact": {
                "kind": "ninfer",
                "revision": self.revision,
                "digest": self.digest,
                "content_root": self.content_root,
                "bytes": sum(file.bytes for file in self.files),
                "files": [
                    {"name": file.name, "bytes": file.bytes, "sha256": file.sha256} for file in self.files
                ],
            },
            "recipe": {"digest": self.recipe},
            "objects": [_object_json(item) for item in self.objects],
            "unused_sources": unused_sources(self.accounting),
            "accounting": accounting_json(self.accounting),
            "findings": [finding_json(finding) for finding in self.findings],
            "versions": versions(),
        }


def refused_json(findings: Iterable[Finding]) -> dict[str, Any]:
    """The same document where the recipe could not be bound to its sources, so that nothing was even planned."""
    return {
        "schema": SCHEMA,
        "verdict": "refused",
        "artifact": None,
        "recipe": None,
        "objects": [],
        "unused_sources": {},
        "accounting": {},
        "findings": [finding_json(finding) for finding in findings],
        "versions": versions(),
    }


def _object_json(item: Written) -> dict[str, Any]:
    plan = item.plan
    common = {
        "name": item.name,
        "offset": item.offset,
        "bytes": item.bytes,
        "sha256": item.sha256,
        "identity": item.identity,
    }
    if isinstance(plan, ResourcePlan):
        return {**common, "kind": "resource", "source": {"role": plan.role, "file": plan.file}}
    return {
        **common,
        "kind": "tensor",
        "format": plan.fmt.name,
        "layout": plan.layout.name,
        "shape": list(plan.shape),
        "encode": plan.encode,
        "moves": plan.tree,
        "inputs": list(plan.inputs),
        "sources": [{"role": role, "tensor": tensor} for role, tensor in plan.sources],
        "rescued_groups": item.rescued,
        "clamped_lanes": item.clamped,
        "kernels": produced_json(item.kernels),
    }
