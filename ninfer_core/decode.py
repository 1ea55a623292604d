"""One tensor of an artifact as an array of values in a `.npy` file, block by block.

Quantized formats give binary32 values, direct formats their words (BF16 as uint16, FP32 as float32, I32 as int32).
Decoding is defined for legal words only, so every block is checked first.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ninfer_core.containers.directory import ArtifactObject, BrokenObject, ResourceObject, TensorObject
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.containers.publish import NewFile, publish, require_free
from ninfer_core.errors import CutShort, Usage
from ninfer_core.file_findings import report_cut_short
from ninfer_core.findings import Finding, Findings, clip
from ninfer_core.formats import BlockFormat, DirectFormat, GroupedFormat, RowFormat
from ninfer_core.io import ByteSource, Progress, no_progress
from ninfer_core.kernels import cpu
from ninfer_core.layouts.base import Block, Shape
from ninfer_core.layouts.block_scale import unswizzle
from ninfer_core.opening import Opened
from ninfer_core.verify import faults
from ninfer_core.verify.faults import Fault
from ninfer_core.verify.pool import Buffers, Pool
from ninfer_core.verify.tensor import read_planes
from ninfer_core.verify.totals import Totals
from ninfer_core.verify.words import Planes, check_block, grouped_planes

_DIRECT: dict[str, np.dtype[np.generic]] = {
    "BF16": np.dtype("<u2"),
    "FP32": np.dtype("<f4"),
    "I32": np.dtype("<i4"),
}


@dataclass(frozen=True, slots=True)
class Decoded:
    """What was written; with error findings nothing was."""

    findings: tuple[Finding, ...]
    dtype: np.dtype[np.generic] | None = None
    shape: Shape | None = None
    broken: bool = False  # whether the artifact has structural errors elsewhere

    @property
    def written(self) -> bool:
        """Whether the file is there."""
        return self.shape is not None


def decode(
    opened: Opened,
    object_name: str,
    out: Path,
    *,
    workers: int | None = None,
    started: Callable[[Totals], None] = lambda _: None,
    progress: Progress = no_progress,
) -> Decoded:
    """Write the values of one tensor to `out`, which must not exist; `started` hears what is ahead.

    Raises: Usage when there is no such tensor, CannotRead, CannotWrite.
    """
    if opened.kind != "ninfer":
        raise Usage(
            "only tensors of .ninfer artifacts are decoded; a safetensors file holds plain words already"
        )
    require_free([out])
    findings = Findings()
    artifact = read_artifact(opened.files, opened.entry, findings)
    if artifact is None:
        return Decoded(tuple(findings))
    found = next((item for item in artifact.objects if object_name in (item.name, _label(item))), None)
    match found:
        case None:
            names = [item.name for item in artifact.objects if item.name is not None]
            near = get_close_matches(object_name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "`inspect` lists what it holds"
            raise Usage(f"the artifact holds no object {object_name!r}; {hint}")
        case ResourceObject():
            raise Usage(f"{object_name!r} is a resource, and only tensors have values")
        case BrokenObject():
            about = tuple(finding for finding in findings if finding.object in (None, clip(_label(found))))
            return Decoded(about if any(one.severity == "error" for one in about) else tuple(findings))
        case TensorObject():
            decoded = _decode(found, artifact.payload, out, Pool(workers, progress), started)
            return replace(decoded, broken=bool(findings.errors))


def _label(item: ArtifactObject) -> str:
    return item.label if isinstance(item, BrokenObject) else item.name


def _decode(
    item: TensorObject, payload: ByteSource, out: Path, pool: Pool, started: Callable[[Totals], None]
) -> Decoded:
    dtype: np.dtype[np.generic] = _DIRECT.get(item.format.name, np.dtype("<f4"))
    header = _npy_header(dtype, item.shape)
    n, k = item.layout.matrix(item.format, item.shape)
    size = n * k * dtype.itemsize
    started(Totals(1, size))
    new = NewFile(out, len(header) + size)
    try:
        new.write(header, 0)
        tasks = [
            partial(_block, item, payload, block, new, len(header), pool)
            for block in item.layout.blocks(item.format, item.shape)
        ]
        findings = Findings()
        found: list[Fault] = []
        for outcome in pool.run(tasks):
            if isinstance(outcome, CutShort):
                report_cut_short(outcome, findings, item.name, item.ordinal)
            else:
                found += outcome
        faults.report(found, item.name, findings)
        if findings.errors:
            return Decoded(tuple(findings))
        publish([new])
    finally:
        new.close()
    return Decoded(tuple(findings), dtype, item.shape)


def _block(
    item: TensorObject, payload: ByteSource, block: Block, new: NewFile, start: int, pool: Pool
) -> list[Fault] | CutShort:
    pool.check()
    try:
        planes = read_planes(item, block, payload, item.offset, pool.buffers)
    except CutShort as error:
        return error
    found = check_block(item, block, planes)
    if found:
        return found
    values = _values(item, block, planes, pool.buffers)
    k = item.layout.matrix(item.format, item.shape)[1]
    size = values.dtype.itemsize
    if block.columns == k or block.rows == 1:
        new.write(values.reshape(-1).view(np.uint8).data, start + (block.row * k + block.column) * size)
    else:
        for row in range(block.rows):
            new.write(values[row].view(np.uint8).data, start + ((block.row + row) * k + block.column) * size)
    pool.advance(values.nbytes)
    return []


def _values(item: TensorObject, block: Block, planes: Planes, buffers: Buffers) -> NDArray[np.generic]:
    if isinstance(item.format, DirectFormat):
        return planes[0].reshape(block.rows, block.columns)
    out = (
        buffers.get("values", block.rows * block.columns * 4)
        .view(np.uint32)
        .reshape(block.rows, block.columns)
    )
    match item.format:
        case GroupedFormat():
            cpu.reconstruct_grouped(item.format, block.columns, grouped_planes(item.format, planes), out)
        case RowFormat():
            cpu.reconstruct_row(planes[0].reshape(block.rows, block.columns), planes[1], out)
        case BlockFormat():
            scales = unswizzle(planes[1], block.rows, block.columns)
            cpu.reconstruct_nvfp4(planes[0], scales, int(planes[2][0]), out)
    return out


def _npy_header(dtype: np.dtype[np.generic], shape: Shape) -> bytes:
    stream = BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype.str, "fortran_order": False, "shape": shape})
    return stream.getvalue()
