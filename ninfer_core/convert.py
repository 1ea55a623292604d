"""A bound recipe becomes a `.ninfer` artifact: encoded block by block, checked, digested, published whole or not at all."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.containers.directory import TensorObject
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.containers.output import Output
from ninfer_core.containers.publish import publish, require_free
from ninfer_core.containers.writer import (
    ARTIFACT_ID_BYTES,
    Blueprint,
    Heading,
    ObjectSpec,
    ResourceSpec,
    TensorSpec,
    blueprint,
)
from ninfer_core.errors import CutShort
from ninfer_core.file_findings import report_cut_short
from ninfer_core.findings import Finding, Findings
from ninfer_core.formats import GroupedFormat
from ninfer_core.identity import FileDigest, artifact_digest, content_root, resource_identity, tensor_identity
from ninfer_core.io import CHUNK_BYTES, Progress, chunks, no_progress, sha256
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import EncodeFault, GroupedPlanes
from ninfer_core.layouts import RESOURCE_ENCODING
from ninfer_core.layouts.base import Block
from ninfer_core.recipes.plan import Plan, ResourcePlan, TensorPlan, report_source_changes
from ninfer_core.recipes.values import CastRefused
from ninfer_core.verify import faults
from ninfer_core.verify.faults import Fault
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.report import finding_json, versions
from ninfer_core.verify.totals import Totals
from ninfer_core.verify.words import check_block

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


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion did; `written` is False when findings refused it, and then no file is left."""

    written: bool
    revision: int
    recipe: str
    findings: tuple[Finding, ...]
    objects: tuple[Written, ...]
    files: tuple[FileDigest, ...]
    content_root: str | None
    unused_sources: dict[str, tuple[str, ...]]

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
            "unused_sources": {role: list(names) for role, names in self.unused_sources.items()},
            "findings": [finding_json(finding) for finding in self.findings],
            "versions": versions(),
        }


@dataclass(slots=True)
class _Outcome:
    faults: list[Fault] = field(default_factory=list)
    rescued: int = 0
    clamped: int = 0
    cut: CutShort | None = None


def convert(
    plan: Plan,
    out: Path,
    *,
    revision: int = 2,
    max_file_bytes: int | None = None,
    workers: int | None = None,
    started: Callable[[Totals], None] = lambda _: None,
    progress: Progress = no_progress,
) -> Conversion:
    """Write the artifact of `plan` to `out`, with parts beside it where revision 3 needs them.

    Faults of the source are findings and leave no file. Raises: Usage, CannotWrite (a name is taken, no space),
    CannotRead.
    """
    draft = blueprint(
        out.name, [_spec(item) for item in plan.objects], _heading(plan), revision, max_file_bytes
    )
    require_free([out.with_name(file.name) for file in draft.files])
    pool = Pool(workers, progress)
    started(Totals(len(plan.objects), draft.bytes * 3))
    with Output(draft, out) as output:
        return _Converter(plan, draft, output, pool).run()


class _Converter:
    def __init__(self, plan: Plan, draft: Blueprint, output: Output, pool: Pool) -> None:
        self.plan, self.draft, self.output, self.pool = plan, draft, output, pool
        self.findings = Findings()
        self.objects = [
            Written(item.name, item, offset, _spec(item).bytes)
            for item, offset in zip(plan.objects, draft.offsets, strict=True)
        ]

    def run(self) -> Conversion:
        """Encode and check, then digest, then publish: nothing that failed a check gets a name."""
        self._encode()
        report_source_changes(self.plan, self.findings)
        if self.findings.errors:
            return self._conversion(False, (), None)
        root = self._digest_objects()
        self._compare_pins()
        self.output.write_headers(bytes.fromhex(root.removeprefix("sha256:"))[:ARTIFACT_ID_BYTES])
        # The recipe's own words went into the directory; what our own reader would refuse is never published.
        read_artifact(self.output, self.output.files[0].name, self.findings)
        if self.findings.errors:
            return self._conversion(False, (), None)
        tasks = [partial(sha256, file, progress=self.pool.advance) for file in self.output.files]
        digests = tuple(
            FileDigest(file.name, file.size, digest)
            for file, digest in zip(self.output.files, self.pool.run(tasks), strict=True)
        )
        publish(self.output.files)
        return self._conversion(True, digests, root)

    def _conversion(self, written: bool, files: tuple[FileDigest, ...], root: str | None) -> Conversion:
        return Conversion(
            written,
            self.draft.revision,
            self.plan.recipe.digest,
            tuple(self.findings),
            tuple(self.objects),
            files,
            root,
            dict(self.plan.unused_sources),
        )

    def _encode(self) -> None:
        work = [(item, list(self._tasks(item))) for item in self.objects]
        done = iter(self.pool.run([task for _, tasks in work for task in tasks]))
        for item, tasks in work:
            outcomes = [next(done) for _ in tasks]
            faults.report(
                (fault for outcome in outcomes for fault in outcome.faults), item.name, self.findings
            )
            item.rescued = sum(outcome.rescued for outcome in outcomes)
            item.clamped = sum(outcome.clamped for outcome in outcomes)
            cut = next((outcome.cut for outcome in outcomes if outcome.cut is not None), None)
            if cut is not None:
                report_cut_short(cut, self.findings, item.name, about="source")

    def _tasks(self, item: Written) -> Iterator[Callable[[], _Outcome]]:
        plan = item.plan
        if isinstance(plan, ResourcePlan):
            yield partial(self._copy, item, plan)
            return
        for block in plan.layout.blocks(plan.fmt, plan.shape):
            yield partial(self._block, item, plan, block)

    def _copy(self, item: Written, plan: ResourcePlan) -> _Outcome:
        outcome = _Outcome()
        offset = item.offset
        buffer = self.pool.buffers.get("copy", min(CHUNK_BYTES, item.bytes))
        try:
            for piece in chunks(plan.source, 0, item.bytes, buffer.data):
                self.output.write(piece, offset)
                offset += len(piece)
                self.pool.advance(len(piece))
        except CutShort as error:
            outcome.cut = error
        return outcome

    def _block(self, item: Written, plan: TensorPlan, block: Block) -> _Outcome:
        self.pool.check()
        outcome = _Outcome()
        k = plan.layout.matrix(plan.fmt, plan.shape)[1]
        begin = block.row * k + block.column
        try:
            words = plan.value.read(begin, begin + block.rows * block.columns)
        except CastRefused as refusal:
            where = {"index": refusal.element, "word": f"0x{refusal.word:x}"}
            outcome.faults.append(
                Fault(
                    "convert.cast_refused", 1, where, "a value that can be cast", refusal.reason, str(refusal)
                )
            )
            return outcome
        except CutShort as error:
            outcome.cut = error
            return outcome
        planes = self._planes(plan, block, words, outcome)
        if planes is None:
            return outcome
        stored = TensorObject(0, item.name, plan.shape, plan.fmt, plan.layout, item.offset, item.bytes)
        # Whatever the recipe says: what our own check would fail is never published.
        outcome.faults += check_block(stored, block, planes)
        if not outcome.faults:
            self._write(item, plan, block, planes)
        return outcome

    def _planes(
        self, plan: TensorPlan, block: Block, words: NDArray[Any], outcome: _Outcome
    ) -> Sequence[NDArray[Any]] | None:
        if not isinstance(plan.fmt, GroupedFormat):
            return (words,)
        planes = GroupedPlanes.empty(plan.fmt, block.rows, block.columns)
        encoded = cpu.encode(plan.fmt, words.reshape(block.rows, block.columns), plan.value.dtype, planes)
        if isinstance(encoded, EncodeFault):
            outcome.faults.append(_refusal(plan.fmt, block, encoded))
            return None
        outcome.rescued, outcome.clamped = encoded.rescued, encoded.clamped
        return (planes.base, planes.high, planes.scales) if planes.high.size else (planes.base, planes.scales)

    def _write(self, item: Written, plan: TensorPlan, block: Block, planes: Sequence[NDArray[Any]]) -> None:
        for plane, spans in zip(planes, plan.layout.spans(plan.fmt, plan.shape, block), strict=True):
            content = np.ascontiguousarray(plane).view(np.uint8).reshape(-1).data
            done = 0
            for span in spans:
                self.output.write(content[done : done + span.length], item.offset + span.offset)
                done += span.length
                self.pool.advance(span.length)

    def _compare_pins(self) -> None:
        pins = {resource.object: resource.pin.sha256 for resource in self.plan.recipe.resources}
        for item in self.objects:
            pinned = pins.get(item.name)
            if pinned is not None and item.sha256 != pinned:
                message = f"{item.name!r} was copied from a file that is not the one the recipe pins"
                self.findings.add(
                    "source.file_digest_mismatch",
                    message,
                    object=item.name,
                    expected=pinned,
                    found=item.sha256,
                )

    def _digest_objects(self) -> str:
        tasks = [
            partial(sha256, self.output.payload, item.offset, item.bytes, self.pool.advance)
            for item in self.objects
        ]
        for item, digest in zip(self.objects, self.pool.run(tasks), strict=True):
            item.sha256 = digest
            if isinstance(item.plan, TensorPlan):
                item.identity = tensor_identity(
                    item.plan.fmt.name, item.plan.shape, item.plan.layout.name, digest
                )
            else:
                item.identity = resource_identity(RESOURCE_ENCODING, digest)
        return content_root((item.name, item.identity) for item in self.objects if item.identity is not None)


def _refusal(fmt: GroupedFormat, block: Block, fault: EncodeFault) -> Fault:
    row, group = block.row + fault.row, block.column // fmt.group + fault.group
    where: dict[str, Any] = {"row": row, "group": group}
    if fault.lane is not None:
        where |= {"lane": fault.lane, "column": group * fmt.group + fault.lane}
    where["word"] = f"0x{fault.word:x}"
    if fault.kind == "source_not_finite":
        message = f"row {row}, group {group}, lane {fault.lane}: source word {where['word']} is not finite in binary32"
        return Fault("convert.source_not_finite", 1, where, "a finite value", where["word"], message)
    message = f"row {row}, group {group}: the scale, binary32 word {where['word']}, is beyond the largest binary16 value"
    return Fault("convert.scale_overflow", 1, where, "a scale of at most 65504", where["word"], message)


def _spec(item: TensorPlan | ResourcePlan) -> ObjectSpec:
    if isinstance(item, TensorPlan):
        return TensorSpec(item.name, item.shape, item.fmt, item.layout)
    return ResourceSpec(item.name, item.source.size)


def _heading(plan: Plan) -> Heading:
    recipe = plan.recipe
    sections: dict[str, Any] = {}
    if recipe.metadata is not None:
        sections["metadata"] = dict(recipe.metadata)
    sections["provenance"] = {
        "recipe": {"recipe_id": recipe.recipe_id, "digest": recipe.digest},
        "identity": {"model_id": recipe.model_id, "weights_id": recipe.weights_id},
        "sources": {
            role: {"repository": source.repository, "revision": source.revision}
            for role, source in recipe.sources.items()
        },
    }
    components = dict(recipe.components) if recipe.components is not None else {"text": {"config": {}}}
    return Heading(recipe.model_id, recipe.weights_id, components, sections)


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
        "sources": [{"role": role, "tensor": tensor} for role, tensor in plan.sources],
        "rescued_groups": item.rescued,
        "clamped_lanes": item.clamped,
    }
