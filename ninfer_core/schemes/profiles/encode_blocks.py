"""Codes of codebooks, small floats and structured blocks, put into `words_by_path`."""

import math
from fractions import Fraction

import numpy as np

from ninfer_core.schemes.bits import units_of, words_of
from ninfer_core.schemes.form import Array, Shape, Values
from ninfer_core.schemes.profiles.kinds_blocks import block_count
from ninfer_core.schemes.profiles.model import (
    BlockField,
    Codebook,
    FloatingPoint,
    Scale,
    ScaleField,
    ScaleFloat,
    ScaleInt,
    ScaleVector,
    StructuredBlock,
)
from ninfer_core.schemes.profiles.nearest import entries, finite, over, scale_words
from ninfer_core.schemes.run import CannotEncode
from ninfer_core.schemes.small_floats import SmallFloat, Specials
from ninfer_core.schemes.small_floats import encode as small_codes
from ninfer_core.schemes.structs.leaves import LEAVES


def codebook(words_by_path: dict[str, Array], kind: Codebook, x: Values, at: str) -> None:
    """Nearest entries; a stored scale is the largest magnitude over that of the table."""
    if kind.books != 1:
        raise CannotEncode("codes of several added codebooks need a search, and no rule fixes them")
    batch = x.shape[:-1]
    table = np.asarray(kind.codebook_data, np.float32).reshape(kind.entries, kind.vector)
    if isinstance(kind.scale, ScaleField):
        finite(x)
        largest = np.abs(x).max(axis=-1, initial=0.0).astype(np.float32)
        top = np.abs(table).max()
        if kind.vector > 1 or not top:
            raise CannotEncode("a scale beside a table of vectors needs a search, and no rule fixes it")
        words, scales = scale_words(largest / top, kind.scale.type, Fraction(1))
        words_by_path[f"{at}scale"] = words[..., None]
        x = over(x, scales[..., None])
    elif kind.scale is not None:
        x = over(x, constant_scale(kind.scale, (), -1))
    codes = entries(x.reshape(*batch, x.shape[-1] // kind.vector, kind.vector), table)
    if kind.index_bits:
        held = words_of(codes, kind.index_bits)
    else:
        digits, size = kind.packed_count or 1, kind.packed_bytes or 1
        units = -(-codes.shape[-1] // digits)
        padded = np.zeros((*batch, units * digits), np.int64)
        padded[..., : codes.shape[-1]] = codes
        packed = units_of(padded.reshape(*batch, units, digits), kind.entries, size)
        held = packed.reshape(*batch, units * size)
    words_by_path[f"{at}indices"] = held


def floating_point(
    words_by_path: dict[str, Array], kind: FloatingPoint, x: Values, shape: Shape, path: str
) -> None:
    """Nearest codes; a stored scale by the rule of its type."""
    batch, at = x.shape[: x.ndim - len(shape)], f"{path}." if path else ""
    form = small_float(kind)
    flat = x.reshape(*batch, math.prod(shape))
    if kind.scale is not None:
        words, scales = scale_words(
            np.abs(flat).max(axis=-1, initial=0.0).astype(np.float32), kind.scale.type, form.largest
        )
        words_by_path[f"{at}scale"] = words[..., None]
        flat = over(flat, scales[..., None])
    try:
        codes = small_codes(form, np.ascontiguousarray(flat))
    except ValueError as fault:
        raise CannotEncode(str(fault)) from fault
    if kind.carrier == "native":
        words_by_path[f"{at}values"] = codes.reshape(*batch, *(shape if batch else (codes.size,)))
    elif kind.carrier == "bytes":
        words_by_path[f"{at}values"] = words_of(codes, kind.bits)
    else:
        _components(words_by_path, kind, codes, path)


def _components(words_by_path: dict[str, Array], kind: FloatingPoint, codes: Array, path: str) -> None:
    if kind.unit is not None:
        units = -(-codes.shape[-1] // kind.packed_count)
        padded = np.zeros((*codes.shape[:-1], units * kind.packed_count), codes.dtype)
        padded[..., : codes.shape[-1]] = codes
        codes = padded.reshape(*codes.shape[:-1], units, kind.packed_count)
    m, e = kind.mantissa_bits, kind.exponent_bits
    parts = {
        "mantissa": codes & ((1 << m) - 1),
        "exponent": codes >> m & ((1 << e) - 1),
        "sign": codes >> m + e,
    }
    for name, place in component_paths(kind, path).items():
        words_by_path[place] = parts[name]


def component_paths(kind: FloatingPoint, path: str) -> dict[str, str]:
    """Where mantissa, exponent and sign of a value lie, with no sign where there is none."""
    at = f"{path}." if path else ""
    if kind.unit is not None:
        at = f"{at}{kind.unit.field}."
    names = ("mantissa", "exponent", "sign")
    if kind.bare:
        prefix = dict.fromkeys(names, f"{path}.")
    elif not kind.split_storage:
        prefix = dict.fromkeys(names, f"{at}packed.")
    else:
        first = f"{at}{'sign_exponent' if kind.sign_bits else 'exponent'}."
        leaf = kind.mantissa_bits in (2, 4, 8)
        prefix = {"mantissa": at if leaf else f"{at}mantissa.", "exponent": first, "sign": first}
    widths = {"mantissa": kind.mantissa_bits, "exponent": kind.exponent_bits, "sign": kind.sign_bits}
    return {name: prefix[name] + name for name in names if widths[name]}


def structured_block(
    words_by_path: dict[str, Array], kind: StructuredBlock, x: Values, shape: Shape, at: str
) -> None:
    """Nearest entries of a codebook, with the largest magnitude of a block as its scale."""
    layout, scatter = kind.layout, kind.scatter
    scale = scaled_field(kind)
    batch, size = x.shape[: x.ndim - len(shape)], layout.block_size
    blocks = block_count(kind, shape)
    moved = x if kind.axis is None else np.moveaxis(x, len(batch) + kind.axis, -1)
    run = math.prod(shape) if kind.axis is None else shape[kind.axis]
    runs = 1 if kind.axis is None else math.prod(shape[: kind.axis] + shape[kind.axis + 1 :])
    rows = moved.reshape(*batch, runs, run)
    padded = np.zeros((*rows.shape[:-1], -(-run // size) * size), np.float32)
    padded[..., :run] = rows
    held = padded.reshape(*batch, blocks, size)
    finite(held)
    table = np.asarray(kind.codebook_data, np.float32).reshape(-1, kind.codebook_vector_size)
    top = np.abs(table).max()
    if not top:
        raise CannotEncode("every entry of the codebook is 0")
    largest = np.abs(held).max(axis=-1, initial=0.0) / top
    words, scales = scale_words(largest.astype(np.float32), scale.data_type or "", Fraction(1))
    held = over(held, scales[..., None])
    if scatter is not None:
        apart = held.reshape(*batch, blocks, size // scatter.group_size, scatter.vector_size, scatter.stride)
        held = np.swapaxes(apart, -1, -2)
    picks = entries(held.reshape(*batch, blocks, size // table.shape[1], table.shape[1]), table)
    prefix = at if kind.bare or kind.storage_order == "SEQUENTIAL" else f"{at}blocks."
    words_by_path[f"{prefix}{scale.name}"] = words if scale.scalar else words[..., None]
    _fields(words_by_path, kind, picks, prefix)


def _fields(words_by_path: dict[str, Array], kind: StructuredBlock, picks: Array, prefix: str) -> None:
    """Indices taken apart by the formula, the largest multiplier first."""
    rest = picks.copy()
    for field, multiplier in taken_apart(kind):
        part = np.minimum(rest // multiplier, (1 << field.bit_width) - 1)
        rest = rest - part * multiplier
        if field.carrier:
            width = LEAVES[field.carrier].bits
            stream = words_of(part, field.bit_width)
            if width < 8:
                shifts = np.arange(0, 8, width, dtype=np.uint8)
                spread = stream[..., None] >> shifts & np.uint8((1 << width) - 1)
                stream = spread.reshape(*stream.shape[:-1], stream.shape[-1] * (8 // width))[
                    ..., : field.bits // width
                ]
            words_by_path[f"{prefix}{field.name}"] = stream
        else:
            words_by_path[f"{prefix}{field.name}"] = part[..., 0] if field.scalar else part
    if rest.any():
        raise CannotEncode("the index formula does not reach every entry")


def scaled_field(kind: StructuredBlock) -> BlockField:
    """The scale of a block of codebook indices. Raises: CannotEncode for any other block."""
    scale = kind.layout.of("SCALE")
    roles = {term.field for term in kind.index_formula} | {"SCALE"}
    stored = scale is not None and scale.data_type is not None
    if scale is None or not stored or not kind.codebook_data or {f.role for f in kind.layout.fields} != roles:
        raise CannotEncode("no rule says how scale, zero point and bias of such a block are chosen")
    return scale


def taken_apart(kind: StructuredBlock) -> list[tuple[BlockField, int]]:
    """The fields of the index formula, the largest multiplier first. Raises: CannotEncode."""
    fields = []
    for term in sorted(kind.index_formula, key=lambda term: -term.multiplier):
        field = kind.layout.of(term.field)
        if field is None or term.multiplier < 1 or field.data_type is not None:
            raise CannotEncode("the index formula cannot be taken apart")
        fields.append((field, term.multiplier))
    return fields


def reaches_every_entry(kind: StructuredBlock, entries: int) -> bool:
    """Whether the index formula can say each of so many indices."""
    rest = np.arange(entries)
    for field, multiplier in taken_apart(kind):
        rest = rest - np.minimum(rest // multiplier, (1 << field.bit_width) - 1) * multiplier
    return not rest.any()


def constant_scale(scale: Scale, shape: Shape, axis: int) -> Values:
    """A scale of the type in dims that spread over the tensor. Raises: CannotEncode for a stored one, or 0."""
    match scale:
        case ScaleFloat(value=value):
            factor = np.float32(value)
        case ScaleInt(exponent=exponent):
            factor = np.float32(2.0**exponent)
        case ScaleVector(values=values):
            dims = [-1 if place == axis else 1 for place in range(len(shape))]
            return np.asarray(values, np.float32).reshape(dims)
        case ScaleField():
            raise CannotEncode("no rule says how a stored scale of linear codes is chosen")
    if not factor:
        raise CannotEncode("the scale is 0, so every code decodes to 0")
    return np.asarray(factor, np.float32)


def small_float(kind: FloatingPoint) -> SmallFloat:
    """The float of a profile. Raises: CannotEncode for one too wide."""
    specials = Specials.IEEE if kind.has_inf else Specials.NAN if kind.has_nan else Specials.NONE
    if kind.bits > 16:
        raise CannotEncode("floats of more than 16 bits are cast, not encoded")
    return SmallFloat(
        "the profile's float",
        kind.exponent_bits,
        kind.mantissa_bits,
        kind.exponent_bias,
        specials,
        bool(kind.sign_bits),
    )
