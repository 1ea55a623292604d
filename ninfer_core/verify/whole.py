"""What a recipe demands and only a whole object can tell: that all words differ, and the shape of very wide rows."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.containers.directory import TensorObject
from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.formats import DirectFormat, RowFormat
from ninfer_core.io import CHUNK_BYTES, ByteSource, chunks, read
from ninfer_core.kernels import cpu
from ninfer_core.kernels.shapes import HOLDS_NEGATIVE_ZERO
from ninfer_core.layouts.base import BLOCK_WEIGHTS, elements
from ninfer_core.verify.faults import Fault
from ninfer_core.verify.outcomes import Part
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.restrictions import ROW_SHAPE, UNIQUE, fault, judged, odd_row, odd_rows
from ninfer_core.verify.task import Task
from ninfer_core.words import i32_value

if TYPE_CHECKING:
    from ninfer_core.recipes.restrictions import Restriction

SEEN_BYTES: Final = 32 << 20  # bits for 2**28 words at a time: at most 16 passes, whatever the tensor


def object_tasks(
    item: TensorObject, payload: ByteSource, claims: "Iterable[Restriction]", pool: Pool
) -> Iterator[Task[[], Part]]:
    """What must see a whole object: `unique`, and the shape of rows that no block holds whole.

    Each yields a `Part`, to be merged behind those of the blocks.
    """
    for claim in judged(claims):
        if claim.rule == UNIQUE and isinstance(item.format, DirectFormat):
            yield Task(2 * item.bytes, partial(_part, pool, _unique, item, payload, claim))
        elif claim.rule == ROW_SHAPE and isinstance(item.format, RowFormat) and item.shape[1] > BLOCK_WEIGHTS:
            yield Task(item.bytes, partial(_part, pool, _wide_rows, item, payload, claim))


def _part(
    pool: Pool,
    check: "Callable[[TensorObject, ByteSource, Restriction, Pool], Fault | None]",
    item: TensorObject,
    payload: ByteSource,
    claim: "Restriction",
) -> Part:
    try:
        found = check(item, payload, claim, pool)
    except (CutShort, CannotRead) as error:
        return Part(error=error)
    return Part(faults=[found] if found is not None else [])


def _wide_rows(item: TensorObject, payload: ByteSource, claim: "Restriction", pool: Pool) -> Fault | None:
    n, k = item.shape
    scales = item.layout.planes(item.format, item.shape)[1].span.offset
    buffer = pool.buffers.get("row", min(CHUNK_BYTES, k))
    odd: list[int] = []
    first: tuple[int, int | None] = (0, None)
    for row in range(n):
        mask, column, done = np.zeros(1, np.uint8), None, 0
        for piece in chunks(payload, item.offset + row * k, k, buffer.data):
            pool.check()
            codes = np.frombuffer(piece, np.uint8)
            cpu.row_masks(codes.reshape(1, -1), mask)
            if column is None and mask[0] & HOLDS_NEGATIVE_ZERO:
                column = done + int((codes == 0x80).argmax())
            done += codes.size
        scale = np.frombuffer(read(payload, item.offset + scales + 2 * row, 2), "<u2")
        unnatural, signed = odd_rows(mask, scale)
        if unnatural[0] or signed[0]:
            first = first if odd else (int(scale[0]), column if signed[0] else None)
            odd.append(row)
    if not odd:
        return None
    return odd_row(item, claim, len(odd), odd[0], *first, np.array(odd, np.intp))


def _unique(item: TensorObject, payload: ByteSource, claim: "Restriction", pool: Pool) -> Fault | None:
    """Bits of one range of words at a time, so that memory does not grow with the tensor."""
    low, high = 1 << 32, 0
    for _, words in _runs(item, payload, pool):
        low, high = min(low, int(words.min())), max(high, int(words.max()))
    count, index, word = 0, elements(item.shape), 0
    for start in range(low, high + 1, 8 * SEEN_BYTES):
        seen = pool.buffers.get("seen", min(SEEN_BYTES, (high - start) // 8 + 1))
        seen[:] = 0
        found = np.array([0, -1, 0], np.int64)
        for at, words in _runs(item, payload, pool):
            cpu.repetitions(words, start, at, seen, found)
        count += int(found[0])
        if found[0] and found[1] < index:
            index, word = int(found[1]), int(found[2])
    if not count:
        return None
    first = _place_of(word, item, payload, pool)
    digits = item.bytes // elements(item.shape) * 2
    shown = i32_value(word) if item.format.name == "I32" else f"0x{word:0{digits}x}"
    where = {"index": index, "first": first, "byte": index * (digits // 2), "value": shown}
    message = f"element {index} repeats element {first}: both are {shown}"
    return fault(claim, count, where, "words that all differ", f"{shown} twice", message)


def _place_of(word: int, item: TensorObject, payload: ByteSource, pool: Pool) -> int:
    for at, words in _runs(item, payload, pool):
        equal = words == word
        if equal.any():
            return at + int(equal.argmax())
    raise CannotRead(f"{payload.name} changed while it was read")


def _runs(item: TensorObject, payload: ByteSource, pool: Pool) -> Iterator[tuple[int, NDArray[np.uint32]]]:
    """(index of the first, words) of one run after another; a run is valid until the next."""
    width = item.bytes // elements(item.shape)
    buffer = pool.buffers.get("run", min(CHUNK_BYTES, item.bytes))
    done = 0
    for piece in chunks(payload, item.offset, item.bytes, buffer.data):
        pool.check()
        words = np.frombuffer(piece, f"<u{width}")
        yield done, words.astype(np.uint32, copy=False)
        done += words.size
