"""Structured blocks: values or codebook entries by an index of several fields, placed, shifted, scaled and biased."""

import math

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.kinds_blocks import block_count
from ninfer_core.schemes.profiles.model import BlockField, Scatter, StructuredBlock
from ninfer_core.schemes.profiles.ops import Ops, T
from ninfer_core.schemes.profiles.place import Place
from ninfer_core.schemes.structs.leaves import LEAVES


def structured_block(ops: Ops[T], kind: StructuredBlock, shape: Shape, place: Place) -> T:
    """FLOAT [*batch, *shape]: (v - zero point) x scale + bias in each block."""
    blocks = block_count(kind, shape)
    at = blocks_place(kind, shape, place)
    if kind.codebook_data:
        made = _entries(ops, kind, place, at)
    else:
        values = kind.layout.of("VALUES")
        made = _numbers(ops, values, at) if values is not None else ops.constant(0.0, "FLOAT")
    if kind.scatter is not None:
        made = _scattered(ops, made, kind.scatter, kind.layout.block_size, at)
    for role, step in (("ZERO_POINT", ops.subtract), ("SCALE", ops.multiply), ("BIAS", ops.add)):
        field = kind.layout.of(role)
        if field is not None:
            made = step(made, ops.reshape(_numbers(ops, field, at), *at.batch, 1))
    return _joined(ops, kind, made, blocks, shape, place)


def _integers(ops: Ops[T], field: BlockField, at: Place) -> T:
    """A field's elements [*batch, count] as they are stored."""
    stored = ops.stored(at.leaf(field.name))
    if field.carrier:
        width = LEAVES[field.carrier].bits
        words = field.bits // width
        if width < 8:  # the view spreads carriers of less than a byte; their bits are put together again
            stored = _bytes(ops, stored, width, words, at)
            words = -(-words * width // 8)
        return ops.codes(stored, field.bit_width, field.count, at.batch, words)
    return ops.reshape(stored, *at.batch, field.count)


def _bytes(ops: Ops[T], x: T, width: int, words: int, at: Place) -> T:
    """Words of 2 or 4 bits as bytes, low ones first; words that do not fill the last byte count as zero."""
    per = 8 // width
    count = -(-words // per)
    wide = ops.cast(x, "FLOAT")
    if count * per != words:
        zeros = ops.constant([[0.0] * (count * per - words)] * math.prod(at.batch), "FLOAT")
        wide = ops.concat([wide, ops.reshape(zeros, *at.batch, count * per - words)], len(at.batch))
    grouped = ops.reshape(wide, *at.batch, count, per)
    made = None
    for slot in range(per):
        part = ops.reshape(ops.cut(grouped, len(at.batch) + 1, slot, slot + 1), *at.batch, count)
        part = ops.multiply(part, ops.constant(float(1 << slot * width), "FLOAT"))
        made = part if made is None else ops.add(made, part)
    if made is None:
        raise ValueError("a byte has words")
    return ops.cast(made, "UINT8")


def _numbers(ops: Ops[T], field: BlockField, at: Place) -> T:
    """A field's elements [*batch, count] as FLOAT."""
    if field.data_type is not None and LEAVES[field.data_type].kind == "float":
        return ops.reshape(ops.number(at.leaf(field.name)), *at.batch, field.count)
    return ops.cast(_integers(ops, field, at), "FLOAT")


def indices(ops: Ops[T], kind: StructuredBlock, place: Place, at: Place) -> T:
    """INT32 indices into the codebook by sum(field x multiplier): [*batch, indices of a block]."""
    path = place.constant("index_multipliers")
    weights = tuple(term.multiplier for term in kind.index_formula)
    stated = ops.stored(path) if ops.has(path) else ops.constant(weights, "INT32")
    index = None
    for number, term in enumerate(kind.index_formula):
        field = kind.layout.of(term.field)
        if field is None:
            raise ValueError(f"a block without the field {term.field}")
        weight = ops.cut(stated, 0, number, number + 1)
        part = ops.multiply(ops.cast(_integers(ops, field, at), "INT32"), weight)
        index = part if index is None else ops.add(index, part)
    if index is None:
        raise ValueError("an index formula without terms")
    return index


def blocks_place(kind: StructuredBlock, shape: Shape, place: Place) -> Place:
    """Where the fields of the blocks are: below an array of blocks, or in regions."""
    blocks = block_count(kind, shape)
    if kind.bare:
        return place.repeated(blocks)
    if kind.storage_order == "SEQUENTIAL":
        return Place(place.path, (*place.batch, blocks), place.first)
    return place.below("blocks", blocks)


def _entries(ops: Ops[T], kind: StructuredBlock, place: Place, at: Place) -> T:
    """Entries of the codebook: [*batch, values of a block]."""
    size = kind.codebook_vector_size
    count = len(kind.codebook_data) // size
    path = place.constant("codebook")
    held = ops.number(path) if ops.has(path) else ops.constant(kind.codebook_data, "FLOAT")
    table = ops.reshape(held, count, size)
    named = {term.field for term in kind.index_formula}
    signed = any(term.multiplier < 0 for term in kind.index_formula) or any(
        item.data_type is not None for item in kind.layout.fields if item.role in named
    )
    found = ops.look_up(table, indices(ops, kind, place, at), count, at.leaf("index"), signed)
    return ops.reshape(found, *at.batch, kind.layout.block_size)


def _scattered(ops: Ops[T], x: T, scatter: Scatter, size: int, at: Place) -> T:
    """Entry g, lane p of a group to g + stride x p: lanes become the outer dimension."""
    rank, groups = len(at.batch), size // scatter.group_size
    apart = ops.reshape(x, *at.batch, groups, scatter.stride, scatter.vector_size)
    moved = ops.transpose(apart, *range(rank), rank, rank + 2, rank + 1)
    return ops.reshape(moved, *at.batch, size)


def _joined(ops: Ops[T], kind: StructuredBlock, x: T, blocks: int, shape: Shape, place: Place) -> T:
    """Blocks [*batch, blocks, size] as the tensor: all of it in order, or runs along the axis."""
    rank, size = len(place.batch), kind.layout.block_size
    if kind.axis is None:
        flat, count = ops.reshape(x, *place.batch, blocks * size), math.prod(shape)
        whole = flat if count == blocks * size else ops.cut(flat, rank, 0, count)
        return ops.reshape(whole, *place.batch, *shape)
    rest = [length for axis, length in enumerate(shape) if axis != kind.axis]
    held = -(-shape[kind.axis] // size) * size
    runs = ops.reshape(x, *place.batch, *rest, held)
    if held != shape[kind.axis]:
        runs = ops.cut(runs, rank + len(rest), 0, shape[kind.axis])
    perm = list(range(rank + len(rest)))
    perm.insert(rank + kind.axis, rank + len(rest))
    return ops.transpose(runs, *perm)
