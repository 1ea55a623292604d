"""Codes of codebooks, small floats and structured blocks as nodes, put into `words` by path; `encode_blocks` on arrays."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.encode_blocks import (
    component_paths,
    constant_scale,
    reaches_every_entry,
    scaled_field,
    small_float,
    taken_apart,
)
from ninfer_core.schemes.profiles.kinds_blocks import block_count
from ninfer_core.schemes.profiles.model import (
    BlockField,
    Codebook,
    FloatingPoint,
    ScaleField,
    StructuredBlock,
)
from ninfer_core.schemes.profiles.node_payload import spread, stream
from ninfer_core.schemes.profiles.node_words import NodeWords
from ninfer_core.schemes.run import CannotEncode
from ninfer_core.schemes.structs.leaves import LEAVES

if TYPE_CHECKING:
    from ninfer_core.schemes.functions.build import Tensor

Words = dict[str, "Tensor"]


def codebook(
    to: NodeWords, words: Words, kind: Codebook, x: "Tensor", count: int, batch: Shape, at: str
) -> None:
    """Nearest entries of x [*batch, count]; a stored scale is the largest magnitude over that of the table."""
    build = to.build
    if kind.books != 1:
        raise CannotEncode("codes of several added codebooks need a search, and no rule fixes them")
    table = np.asarray(kind.codebook_data, np.float32).reshape(kind.entries, kind.vector)
    if isinstance(kind.scale, ScaleField):
        top = np.abs(table).max()
        if kind.vector > 1 or not top or not count:
            raise CannotEncode("a scale beside a table of vectors needs a search, and no rule fixes it")
        x = _under_scale(to, words, x, count, batch, at, kind.scale.type, top)
    elif kind.scale is not None:
        x = to.over_constants(x, constant_scale(kind.scale, (), -1))
    vectors = count // kind.vector
    outer = (*batch, vectors)
    codes = to.entries(build.reshape(x, *outer, kind.vector), outer, table)
    if kind.index_bits:
        words[f"{at}indices"] = stream(build, codes, kind.index_bits, vectors, batch)
        return
    digits, size = kind.packed_count or 1, kind.packed_bytes or 1
    if kind.entries**digits > 1 << 63:
        raise CannotEncode("INT64 does not hold a unit of so many digits")
    units = -(-vectors // digits)
    filled = _filled(to, codes, vectors, units * digits, batch)
    powers = build.constant([kind.entries**place for place in range(digits)], "INT64")
    weighed = build.multiply(build.reshape(filled, *batch, units, digits), powers)
    joined = build.op("ReduceSum", weighed, build.constant([-1], "INT64"), keepdims=0)
    held = spread(build, joined, 8 * size, 8, (*batch, units)) if size > 1 else joined
    words[f"{at}indices"] = build.reshape(held, *batch, units * size)


def floating_point(
    to: NodeWords, words: Words, kind: FloatingPoint, x: "Tensor", shape: Shape, batch: Shape, path: str
) -> None:
    """Nearest codes; a stored scale by the rule of its type."""
    build, count, at = to.build, math.prod(shape), f"{path}." if path else ""
    form = small_float(kind)
    flat = build.reshape(x, *batch, count)
    if kind.scale is not None:
        if not count:
            raise CannotEncode("a block without values has no largest one")
        flat = _under_scale(to, words, flat, count, batch, at, kind.scale.type, None, form.largest)
    codes = to.small(form, flat, (*batch, count))
    if kind.carrier == "native":
        words[f"{at}values"] = build.reshape(codes, *batch, *(shape if batch else (count,)))
    elif kind.carrier == "bytes":
        words[f"{at}values"] = stream(build, codes, kind.bits, count, batch)
    else:
        if kind.unit is not None:
            units = -(-count // kind.packed_count)
            filled = _filled(to, codes, count, units * kind.packed_count, batch)
            codes = build.reshape(filled, *batch, units, kind.packed_count)
        lows = {
            "mantissa": 0,
            "exponent": kind.mantissa_bits,
            "sign": kind.mantissa_bits + kind.exponent_bits,
        }
        widths = {"mantissa": kind.mantissa_bits, "exponent": kind.exponent_bits, "sign": 1}
        wide = build.cast(codes, "UINT16")
        for name, place in component_paths(kind, path).items():
            words[place] = build.field(wide, lows[name], widths[name])


def structured_block(
    to: NodeWords, words: Words, kind: StructuredBlock, x: "Tensor", shape: Shape, batch: Shape, at: str
) -> None:
    """Nearest entries of a codebook, with the largest magnitude of a block as its scale."""
    build, scale, size, blocks = (
        to.build,
        scaled_field(kind),
        kind.layout.block_size,
        block_count(kind, shape),
    )
    axis, rank, scatter = kind.axis, len(batch), kind.scatter
    if axis is not None:
        others = [place for place in range(len(shape)) if place != axis]
        x = build.transpose(x, *range(rank), *(rank + place for place in (*others, axis)))
    run = math.prod(shape) if axis is None else shape[axis]
    runs = 1 if axis is None else math.prod(shape[:axis] + shape[axis + 1 :])
    filled = _filled(to, build.reshape(x, *batch, runs, run), run, -(-run // size) * size, (*batch, runs))
    around = (*batch, blocks)
    table = np.asarray(kind.codebook_data, np.float32).reshape(-1, kind.codebook_vector_size)
    top, lanes = np.abs(table).max(), table.shape[1]
    if not top:
        raise CannotEncode("every entry of the codebook is 0")
    prefix = at if kind.bare or kind.storage_order == "SEQUENTIAL" else f"{at}blocks."
    held = build.reshape(filled, *around, size)
    held = _under_scale(
        to,
        words,
        held,
        size,
        around,
        prefix,
        scale.data_type or "",
        top,
        name=scale.name,
        scalar=scale.scalar,
    )
    if scatter is not None:
        groups = (*around, size // scatter.group_size)
        split = build.reshape(held, *groups, scatter.vector_size, scatter.stride)
        held = build.transpose(split, *range(rank + 2), rank + 3, rank + 2)
    outer = (*around, size // lanes)
    rest = to.entries(build.reshape(held, *outer, lanes), outer, table)
    if not reaches_every_entry(kind, len(table)):
        raise CannotEncode("the index formula does not reach every entry")
    for field, multiplier in taken_apart(kind):
        most = build.constant((1 << field.bit_width) - 1, "INT64")
        part = build.op("Min", build.divide(rest, multiplier), most)
        rest = build.subtract(rest, build.multiply(part, multiplier))
        words[f"{prefix}{field.name}"] = _field(to, field, part, size // lanes, around)


def _field(to: NodeWords, field: BlockField, part: "Tensor", count: int, around: Shape) -> "Tensor":
    build, rank = to.build, len(around)
    if not field.carrier:
        return build.reshape(build.cut(part, rank, 0, 1), *around) if field.scalar else part
    width, held = LEAVES[field.carrier].bits, stream(build, part, field.bit_width, count, around)
    if width > 8:
        raise CannotEncode("a carrier of more than a byte")
    if width == 8:
        return held
    size = -(-count * field.bit_width // 8)
    flat = build.reshape(spread(build, held, 8, width, (*around, size)), *around, size * (8 // width))
    return build.cut(flat, rank, 0, field.bits // width)


def _under_scale(
    to: NodeWords, words: Words, x: "Tensor", count: int, batch: Shape, at: str, leaf: str, entry: np.float32 | None,
    largest: Fraction = Fraction(1), name: str = "scale", scalar: bool = False,
) -> "Tensor":  # fmt: skip
    """x [*batch, count] over the scale of each block; largest magnitudes are first divided by that of a table."""
    build = to.build
    x = to.finite(x, (*batch, count))
    magnitudes = build.op("Abs", x)
    most = build.op("ReduceMax", magnitudes, build.constant([-1], "INT64"), keepdims=0)
    if entry is not None:
        most = build.divide(most, build.constant(entry, "FLOAT"))
    held, scales = to.scale(most, batch, leaf, largest)
    words[f"{at}{name}"] = held if scalar else build.reshape(held, *batch, 1)
    return to.over(x, build.reshape(scales, *batch, 1))


def _filled(to: NodeWords, x: "Tensor", count: int, held: int, batch: Shape) -> "Tensor":
    """x [*batch, count] with zeros behind it."""
    build = to.build
    if held == count:
        return x
    zeros = build.expand(build.constant(0, x.element), *batch, held - count)
    return build.concat([build.reshape(x, *batch, count), zeros], len(batch))
