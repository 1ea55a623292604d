"""`ninfer-gate inspect`: what the directory of a file says, without reading a byte of payload."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from ninfer_core.containers.directory import ArtifactObject, BrokenObject, ResourceObject, TensorObject
from ninfer_core.findings import Finding, Findings
from ninfer_core.formats import FORMATS
from ninfer_core.layouts.base import U64_MAX
from ninfer_core.opening import Opened, open_path
from ninfer_core.sources.dtypes import DTYPES
from service.cli.failures import Task, guarded
from service.cli.output import INSPECTION_SCHEMA, JsonTarget, json_target, no_document, not_empty

_NOTHING_KEPT = "Nothing is kept."


@dataclass(frozen=True, slots=True)
class Listed:
    """One object as the directory states it; what a broken entry does not tell is None."""

    ordinal: int
    name: str | None
    kind: str | None
    format: str | None
    layout: str | None
    shape: tuple[int, ...] | None
    offset: int | None
    bytes: int | None
    file: str | None = None

    @property
    def elements(self) -> int | None:
        """Logical elements of a tensor; None where a broken entry states more than 64 bits count."""
        if self.kind != "tensor" or self.shape is None:
            return None
        count = prod(self.shape)
        return count if count <= U64_MAX else None

    @property
    def logical_bits(self) -> float | None:
        """Bits of one weight in the format: full groups, no padding."""
        if self.format is None:
            return None
        if self.format in FORMATS:
            return float(FORMATS[self.format].logical_bits_per_weight)
        return float(DTYPES[self.format].bits) if self.format in DTYPES else None

    @property
    def stored_bits(self) -> float | None:
        """Bits that the payload spends on one weight, padding and scales included."""
        return 8 * self.bytes / self.elements if self.bytes is not None and self.elements else None


@dataclass(frozen=True, slots=True)
class Inspection:
    """Everything that a directory says."""

    kind: str
    revision: int | None
    model_id: str | None
    weights_id: str | None
    name: str | None
    files: tuple[tuple[str, int], ...]  # name, bytes
    objects: tuple[Listed, ...]
    sections: Mapping[str, int]  # revision 3: how many components, bindings, uses
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong with the structure."""
        return not any(finding.severity == "error" for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Strict JSON values, schema `ninfer-gate/inspection/1`."""
        from ninfer_core.verify.report import finding_json, versions

        return {
            "schema": INSPECTION_SCHEMA,
            "verdict": "passed" if self.sound else "failed",
            "artifact": {
                "kind": self.kind,
                "revision": self.revision,
                "identity": {"model_id": self.model_id, "weights_id": self.weights_id},
                "name": self.name,
                "bytes": sum(size for _, size in self.files),
                "files": [{"name": name, "bytes": size} for name, size in self.files],
            },
            "sections": dict(self.sections),
            "totals": totals(self.objects),
            "objects": [_listed_json(item) for item in self.objects],
            "findings": [finding_json(finding) for finding in self.findings],
            "versions": versions(),
        }


def inspect(path: str, json: str | None, limit: int | None) -> int:
    """The exit code of one inspection, after it is shown."""

    def failed(verdict: str, code: str, message: str) -> dict[str, Any]:
        return no_document(INSPECTION_SCHEMA, verdict, code, message)

    first = JsonTarget(None) if json == "-" else None
    task = Task("inspect", f"inspecting {path}", _NOTHING_KEPT, failed, first)

    def work() -> int:
        target = json_target(json, [Path(not_empty("PATH", path))])
        with open_path(Path(path)) as opened:
            inspection = look(opened)
        if target is not None:
            target.write(inspection.as_json())
        if target is None or not target.alone:
            from service.cli.inspection_view import show_inspection

            show_inspection(inspection, path, limit)
        return 0 if inspection.sound else 1

    return guarded(task, work)


def look(opened: Opened) -> Inspection:
    """The inspection of an opened artifact. Raises: CannotRead."""
    findings = Findings()
    if opened.kind == "safetensors":
        return _safetensors(opened, findings)
    from ninfer_core.containers.ninfer import read_artifact

    artifact = read_artifact(opened.files, opened.entry, findings)
    if artifact is None:
        files = ((opened.entry, opened.files.open(opened.entry).size),)
        return Inspection("ninfer", None, None, None, None, files, (), {}, tuple(findings))
    return Inspection(
        "ninfer",
        artifact.revision,
        artifact.model_id,
        artifact.weights_id,
        artifact.name,
        tuple((file.source.name, file.source.size) for file in artifact.files),
        tuple(_listed(item) for item in artifact.objects),
        {
            name: len(artifact.sections[name])
            for name in ("components", "bindings", "uses")
            if name in artifact.sections
        },
        tuple(findings),
    )


def _safetensors(opened: Opened, findings: Findings) -> Inspection:
    from ninfer_core.sources.checkpoint import INDEX_SUFFIX, Kind, open_checkpoint

    kind = Kind.INDEX if opened.entry.endswith(INDEX_SUFFIX) else Kind.FILE
    checkpoint = open_checkpoint(opened.files, kind, opened.entry, findings)
    files = (
        ((opened.entry, opened.files.open(opened.entry).size),)
        if checkpoint is None
        else tuple((file.name, file.bytes) for file in checkpoint.files)
    )
    tensors = () if checkpoint is None else checkpoint.tensors.values()
    objects = tuple(
        Listed(ordinal, item.name, "tensor", item.dtype, None, item.shape, item.offset, item.bytes, item.file)
        for ordinal, item in enumerate(tensors)
    )
    return Inspection("safetensors", None, None, None, None, files, objects, {}, tuple(findings))


def _listed(item: ArtifactObject) -> Listed:
    match item:
        case TensorObject():
            return Listed(
                item.ordinal,
                item.name,
                "tensor",
                item.format.name,
                item.layout.name,
                item.shape,
                item.offset,
                item.bytes,
            )
        case ResourceObject():
            return Listed(
                item.ordinal, item.name, "resource", None, item.encoding, None, item.offset, item.bytes
            )
        case BrokenObject():
            return Listed(
                item.ordinal,
                item.name,
                item.kind,
                item.format,
                item.layout,
                item.shape,
                item.offset,
                item.bytes,
            )


def totals(objects: Sequence[Listed]) -> dict[str, Any]:
    """Counts, bytes and the two figures of bits per weight: what the formats say, what the payloads spend."""
    tensors = [item for item in objects if item.elements and item.bytes is not None and item.logical_bits]
    elements = sum(item.elements or 0 for item in tensors)
    logical = sum((item.elements or 0) * (item.logical_bits or 0) for item in tensors)
    stored = sum(8 * (item.bytes or 0) for item in tensors)
    return {
        "objects": len(objects),
        "tensors": sum(1 for item in objects if item.kind == "tensor"),
        "resources": sum(1 for item in objects if item.kind == "resource"),
        "bytes": sum(item.bytes or 0 for item in objects),
        "elements": elements,
        "logical_bits_per_weight": logical / elements if elements else None,
        "stored_bits_per_weight": stored / elements if elements else None,
    }


def _listed_json(item: Listed) -> dict[str, Any]:
    return {
        "ordinal": item.ordinal,
        "name": item.name,
        "kind": item.kind,
        "format": item.format,
        "layout": item.layout,
        "shape": None if item.shape is None else list(item.shape),
        "offset": item.offset,
        "bytes": item.bytes,
        "file": item.file,
        "elements": item.elements,
        "logical_bits_per_weight": item.logical_bits,
        "stored_bits_per_weight": item.stored_bits,
    }
