"""Two tensors of one shape, a block of each: how many stored words differ, and by how much the values do.

A block suits both layouts; what a layout hands out in other pieces is put together here. Padding is never compared.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ninfer_core.compare.outcomes import Changes
from ninfer_core.containers.directory import TensorObject
from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.formats import BlockFormat, DirectFormat, GroupedFormat, RowFormat
from ninfer_core.io import ByteSource
from ninfer_core.kernels import cpu
from ninfer_core.kernels.changes import changed_codes
from ninfer_core.kernels.values import ErrorSums
from ninfer_core.layouts.base import BLOCK_WEIGHTS, Block, matrix_blocks
from ninfer_core.layouts.block_scale import TILE_ROWS, unswizzle
from ninfer_core.verify.outcomes import Unread
from ninfer_core.verify.pool import Buffers
from ninfer_core.verify.tensor import read_planes
from ninfer_core.verify.words import Planes, check_block, grouped_planes

COLUMN_UNIT = 128  # runs of columns of so many suit every layout
INTEGERS = "integers are compared by their words"
_WORDS = {
    "BF16": "BF16",
    "FP32": "F32",
}  # direct formats that stand for numbers, as the kernels call their words


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two tensors, where its payload is, and buffers of its own."""

    item: TensorObject
    source: ByteSource
    start: int  # of the payload in `source`
    buffers: Buffers


@dataclass(frozen=True, slots=True)
class Found:
    """Of one block: changed words where the formats are equal, sums where both sides stand for numbers."""

    changes: Changes | None = None
    sums: ErrorSums | None = None
    no_values: str = ""


class SideUnread(Exception):
    """A side could not be read; `error` says why."""

    def __init__(self, side: Side, error: Unread) -> None:
        super().__init__(str(error))
        self.side, self.error = side, error


class Values(NamedTuple):
    """What words stand for, as the kernels take it: `dtype` is BF16 or F32."""

    words: NDArray[Any]
    dtype: str


def blocks(a: TensorObject, b: TensorObject) -> Iterator[Block]:
    """Blocks that suit both tensors, which have one shape; of one row of all elements where both are direct."""
    direct = isinstance(a.format, DirectFormat) and isinstance(b.format, DirectFormat)
    if direct or a.format == b.format:
        yield from a.layout.blocks(a.format, a.shape)
        return
    rows = TILE_ROWS if any(isinstance(one.format, BlockFormat) for one in (a, b)) else 1
    yield from matrix_blocks(a.shape[0], a.shape[1], BLOCK_WEIGHTS, COLUMN_UNIT, rows)


def compare_block(a: Side, b: Side, block: Block, *, with_values: bool) -> Found:
    """One block of both tensors: their words where the formats are equal, their values where these are wanted.

    Raises: SideUnread.
    """
    size = block.rows * block.columns
    if a.item.format != b.item.format:
        if not with_values:
            return Found()
        return _sums(_values(a, _read(a, block), size), _values(b, _read(b, block), size))
    # One format has one layout: the block is one of both.
    left, right = _planes(a, block), _planes(b, block)
    found = Found()
    if with_values:
        found = _sums(_values(a, [(block, left)], size), _values(b, [(block, right)], size))
    return replace(found, changes=_changed(a.item, block, left, right))


def _sums(a: Values | str, b: Values | str) -> Found:
    if isinstance(a, str) or isinstance(b, str):
        reasons = dict.fromkeys(one for one in (_blamed("A", a), _blamed("B", b)) if one)
        return Found(no_values="; ".join(reasons))
    return Found(sums=cpu.error_sums_words(a.words, b.words, a.dtype, b.dtype))


def _blamed(name: str, found: Values | str) -> str:
    if isinstance(found, Values):
        return ""
    return found if found == INTEGERS else f"{name}: {found}"


def _planes(side: Side, part: Block) -> Planes:
    try:
        return read_planes(side.item, part, side.source, side.start, side.buffers)
    except (CutShort, CannotRead) as error:
        raise SideUnread(side, error) from error


def _read(side: Side, block: Block) -> Iterator[tuple[Block, Planes]]:
    """The block in pieces that the tensor's layout has, row-major; each is valid until the next is asked for."""
    for part in _parts(side.item, block):
        yield part, _planes(side, part)


def _parts(item: TensorObject, block: Block) -> Iterator[Block]:
    direct = isinstance(item.format, DirectFormat)
    if direct and block.row == 0 and block.rows == 1:
        yield block
    elif direct and (block.columns == item.shape[1] or block.rows == 1):
        # A direct tensor is one row of all its elements.
        yield Block(0, 1, block.row * item.shape[1] + block.column, block.rows * block.columns)
    elif direct:
        for row in range(block.row, block.row + block.rows):
            yield Block(0, 1, row * item.shape[1] + block.column, block.columns)
    elif block.columns == item.shape[1] or block.rows == 1 or isinstance(item.format, BlockFormat):
        yield block
    else:
        for row in range(block.row, block.row + block.rows):
            yield Block(row, 1, block.column, block.columns)


def _values(side: Side, parts: Iterable[tuple[Block, Planes]], size: int) -> Values | str:
    """What `size` words stand for, or why they stand for no number; valid until the side's next block is read."""
    fmt = side.item.format
    if isinstance(fmt, DirectFormat):
        return _direct(side, fmt, parts, size)
    out = side.buffers.get("values", size * 4).view(np.uint32)
    done = 0
    for part, planes in parts:
        faults = check_block(side.item, part, planes)
        illegal = next((fault for fault in faults if fault.code.startswith("values.")), None)
        if illegal is not None:
            return f"there are words that stand for no value: {illegal.message}"
        stop = done + part.rows * part.columns
        _reconstruct(side.item, part, planes, out[done:stop])
        done = stop
    return Values(out, "F32")


def _direct(side: Side, fmt: DirectFormat, parts: Iterable[tuple[Block, Planes]], size: int) -> Values | str:
    if fmt.name not in _WORDS:
        return INTEGERS
    width = fmt.word_bits // 8
    out, done = side.buffers.get("values", size * width).view(f"<u{width}"), 0
    for _, planes in parts:
        if planes[0].size == size:
            return Values(planes[0], _WORDS[fmt.name])
        out[done : done + planes[0].size] = planes[0]
        done += planes[0].size
    return Values(out, _WORDS[fmt.name])


def _reconstruct(item: TensorObject, part: Block, planes: Planes, out: NDArray[np.uint32]) -> None:
    match item.format:
        case GroupedFormat() as fmt:
            cpu.reconstruct_grouped(fmt, part.columns, grouped_planes(fmt, planes), out)
        case RowFormat():
            cpu.reconstruct_row(planes[0].reshape(part.rows, part.columns), planes[1], out)
        case BlockFormat():
            scales = unswizzle(planes[1], part.rows, part.columns)
            cpu.reconstruct_nvfp4(planes[0], scales, int(planes[2][0]), out)


def _changed(item: TensorObject, part: Block, a: Planes, b: Planes) -> Changes:
    size = part.rows * part.columns
    match item.format:
        case DirectFormat():
            count, place = _different(a[0], b[0])
            return Changes(size, count, first=None if place is None else part.column + place)
        case GroupedFormat() as fmt:
            left, right = grouped_planes(fmt, a), grouped_planes(fmt, b)
            count, place = 0, None
            if not (cpu.same_bytes(left.base, right.base) and cpu.same_bytes(left.high, right.high)):
                count, place = changed_codes(fmt, part.rows, part.columns, left, right)
            groups = -(-part.columns // fmt.group)
            scales = [plane.scales.reshape(part.rows, -1)[:, :groups] for plane in (left, right)]
            changed = int(np.count_nonzero(scales[0] != scales[1]))
            return Changes(size, count, part.rows * groups, changed, first=_flat(item, part, place))
        case BlockFormat():
            count, place = _different_nibbles(a[0], b[0])
            changed, _ = _different(a[1], b[1])
            divisor = bool(a[2][0] != b[2][0])
            return Changes(size, count, a[1].size, changed, divisor, _flat(item, part, place))
        case RowFormat():
            count, place = _different(a[0], b[0])
            # The scale of a row comes with each run of its columns, and counts with the first.
            scale_count = a[1].size if part.column == 0 else 0
            changed = _different(a[1], b[1])[0] if scale_count else 0
            return Changes(size, count, scale_count, changed, first=_flat(item, part, place))


def _flat(item: TensorObject, part: Block, place: int | None) -> int | None:
    if place is None:
        return None
    row, column = divmod(place, part.columns)
    return (part.row + row) * item.shape[1] + part.column + column


def _different(a: NDArray[Any], b: NDArray[Any]) -> tuple[int, int | None]:
    if cpu.same_bytes(a, b):
        return 0, None
    mask = a != b
    return int(np.count_nonzero(mask)), int(mask.argmax())


def _different_nibbles(a: NDArray[Any], b: NDArray[Any]) -> tuple[int, int | None]:
    if cpu.same_bytes(a, b):
        return 0, None
    both = a ^ b
    byte = int((both != 0).argmax())
    count = int(np.count_nonzero(both & 0x0F) + np.count_nonzero(both & 0xF0))
    return count, 2 * byte + (0 if both[byte] & 0x0F else 1)
