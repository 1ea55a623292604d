"""What makes a profile legal for a logical shape: every fault has a code (scheme specification, section 7)."""

import math
from collections.abc import Callable
from typing import Any, Final

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.check_blocks import check_function, check_structured_block
from ninfer_core.schemes.profiles.check_floats import check_floating_point
from ninfer_core.schemes.profiles.check_tiles import check_rotation, check_tiling
from ninfer_core.schemes.profiles.faults import Faults
from ninfer_core.schemes.profiles.model import (
    Cast,
    Codebook,
    FloatingPoint,
    Function,
    Linear,
    Log,
    Quantization,
    Scale,
    ScaleField,
    ScaleFloat,
    ScaleInt,
    ScaleVector,
    Sparse,
    StructuredBlock,
    Tiling,
    ZeroField,
    ZeroPoint,
)
from ninfer_core.schemes.profiles.numbers import concrete, finite, is_float, is_integer, whole
from ninfer_core.schemes.profiles.tiles import cut
from ninfer_core.schemes.structs.leaves import LEAVES

MAX_BOOKS: Final = 256  # each is one step of a decoder
MAX_UNIT_BYTES: Final = 64  # of base-N digits, whose steps are as many as bytes times digits
MAX_EXACT: Final = 1 << 24  # integers up to here are binary32 numbers
PREFIX: Final = "profile:"  # of the metadata keys that hold parameters


def check(quantization: Quantization, shape: Shape) -> Faults:
    """Every fault of a profile for a tensor of that shape, in the order of its levels."""
    faults = Faults(quantization.name)
    if not all(whole(size) for size in shape):
        faults.add("count_not_concrete", "shape", "a dimension is no number", "counts", list(shape))
        return faults
    _check_level(quantization, shape, faults, 0, 0)
    return faults


MAX_LEVELS: Final = 16
MAX_DIMENSIONS: Final = 56  # an array has 64, and a step adds a few


def _check_level(quantization: Quantization, shape: Shape, outer: Faults, level: int, around: int) -> None:
    """One level and those below; `around` counts the dimensions of the tiles that it stands in."""
    faults = Faults(quantization.name, outer.findings)
    if level > MAX_LEVELS or around + 2 * len(shape) > MAX_DIMENSIONS:
        message = f"{level} levels with {around + len(shape)} dimensions are more than can be laid out here"
        expected = f"{MAX_LEVELS} levels, {MAX_DIMENSIONS} dimensions with those of tiles twice"
        faults.add("elements_illegal", "", message, expected, around + 2 * len(shape))
        return
    if quantization.data_type is not None and not is_float(quantization.data_type):
        expected = "a floating-point scalar"
        faults.add(
            "storage_type", "data_type", "no type of a decoded tensor", expected, quantization.data_type
        )
    for key, _ in quantization.metadata:
        if key.startswith(PREFIX) or key in ("quantize_op", "dequantize_op"):
            faults.add("metadata_illegal", key, "a key of the translation itself", "another key", key)
    for rotation, part in (
        (quantization.pre_rotation, "pre_rotation"),
        (quantization.post_rotation, "post_rotation"),
    ):
        if rotation is not None:
            check_rotation(rotation, part, shape, faults)
    if not concrete(quantization.kind, faults):
        return
    kind = quantization.kind
    _CHECKS[type(kind)](kind, shape, faults)
    if isinstance(kind, Tiling) and not faults.any:
        tiles = cut(kind, shape)
        for element in kind.elem_quant:
            _check_level(element, tiles.tile, faults, level + 1, around + len(tiles.grid))
    if isinstance(kind, Sparse) and not faults.any:
        _check_level(kind.base, shape, faults, level + 1, around)


def _check_linear(kind: Linear, shape: Shape, faults: Faults) -> None:
    if kind.storage_type not in LEAVES:
        faults.add("storage_type", "storage_type", "no scalar", ", ".join(LEAVES.names), kind.storage_type)
        return
    own = LEAVES[kind.storage_type].bits
    if not 1 <= kind.bits <= 64:
        faults.add("bits_out_of_range", "bits", "no width of a code", "1 to 64", kind.bits)
        return
    native = kind.leaf is not None and kind.leaf in LEAVES and LEAVES[kind.leaf].bits == kind.bits
    if kind.leaf not in (None, "UINT8") and not native:
        expected = f"{kind.bits} bits, or UINT8 for a stream"
        faults.add("storage_type", "leaf", "another width than `bits`", expected, kind.leaf)
    elif not native and (kind.leaf or kind.bits != own) and kind.bits > 16:
        faults.add("bits_out_of_range", "bits", "too wide for a stream of codes", "1 to 16", kind.bits)
    if kind.bits > own:
        faults.add("bits_out_of_range", "bits", f"more than {kind.storage_type} has", own, kind.bits)
    if not (kind.axis == -1 or 0 <= kind.axis < len(shape)):
        faults.add("axis_out_of_range", "axis", "none of the tensor", f"-1 to {len(shape) - 1}", kind.axis)
        return
    if kind.symmetric and (isinstance(kind.zero_point, ZeroField) or any(_each(kind.zero_point))):
        message = "a symmetric quantization has zero point 0"
        faults.add("zero_point_symmetric", "zero_point", message, 0, kind.zero_point)
    channels = shape[kind.axis] if kind.axis >= 0 else 1
    if any(abs(zero) > MAX_EXACT for zero in _each(kind.zero_point)):
        message = "binary32 does not hold it"
        faults.add("zero_point_out_of_range", "zero_point", message, f"up to {MAX_EXACT:,}", kind.zero_point)
    if isinstance(kind.zero_point, tuple) and len(kind.zero_point) != channels:
        message = "not one for each index of the axis"
        faults.add("zero_point_out_of_range", "zero_point", message, channels, len(kind.zero_point))
    if isinstance(kind.zero_point, ZeroField) and kind.zero_point.type not in LEAVES:
        expected = ", ".join(LEAVES.names)
        faults.add("storage_type", "zero_point", "no scalar", expected, kind.zero_point.type)
    check_scale(kind.scale, channels, faults)


def _each(zero_point: ZeroPoint) -> tuple[int, ...]:
    if isinstance(zero_point, ZeroField):
        return ()
    return zero_point if isinstance(zero_point, tuple) else (zero_point,)


def check_scale(scale: Scale, channels: int, faults: Faults) -> None:
    """A scale that binary32 holds, of a type that scales have, and one for each channel."""
    expected: object = "a finite binary32 number"
    found: object = "another"
    match scale:
        case ScaleFloat(value=value):
            good, found = finite(value), value
        case ScaleInt(exponent=exponent):
            good, expected, found = is_integer(exponent) and -149 <= exponent <= 127, "-149 to 127", exponent
        case ScaleVector(values=values) if all(map(finite, values)):
            good, expected, found = len(values) == channels, f"{channels} scales", len(values)
        case ScaleVector():
            good = False
        case ScaleField(type=name):
            good, expected, found = is_float(name), "a floating-point scalar", name
    if not good:
        faults.add("scale_illegal", "scale", "no scale", expected, found)


def _check_codebook(kind: Codebook, shape: Shape, faults: Faults) -> None:
    if kind.books > MAX_BOOKS:
        faults.add("codebook_size", "num_codebooks", "too many to add", f"up to {MAX_BOOKS}", kind.books)
        return
    length = kind.books * kind.entries * kind.vector
    if not kind.codebook_data or length != len(kind.codebook_data):
        sizes = f"{kind.books} x {kind.entries} x {kind.vector}"
        faults.add("codebook_size", "codebook_data", "its length is another", sizes, len(kind.codebook_data))
        return
    if not all(map(finite, kind.codebook_data)):
        faults.add("codebook_size", "codebook_data", "an entry is not finite", "finite numbers", "others")
    if math.prod(shape) % kind.vector:
        message = f"{math.prod(shape):,} values are not made of whole entries"
        faults.add("vector_size", "vector_size", message, "a divisor", kind.vector)
    if kind.scale is not None:
        check_scale(kind.scale, 1, faults)
    if isinstance(kind.scale, ScaleVector):
        faults.add("scale_illegal", "scale", "a codebook has no axis", "one scale", "a vector")
    count, size, bits = kind.packed_count, kind.packed_bytes, kind.index_bits or 0
    if (count is None) is not (size is None):
        faults.add("index_packing", "packed_count", "stated without packed_bytes", size, count)
    elif bits:
        if not 1 <= bits <= 16 or kind.entries > 1 << bits:
            faults.add("index_packing", "index_bits", f"{kind.entries} entries", "up to 16 bits", bits)
        elif count is not None and size is not None and count * bits != 8 * size:
            message = f"{count} indices of {bits} bits"
            faults.add("index_packing", "packed_bytes", message, f"{count * bits / 8:g} bytes", size)
    elif not count or not size:
        faults.add("index_packing", "packed_count", "neither index_bits nor a packing", "one of them", "none")
    elif size > MAX_UNIT_BYTES:
        expected = f"units of up to {MAX_UNIT_BYTES} bytes"
        faults.add("index_packing", "packed_bytes", "digits of a number too long", expected, size)
    elif count > 8 * size or kind.entries < 2:
        faults.add("index_packing", "packed_count", "digits without content", f"up to {8 * size}", count)
    elif kind.entries**count > 256**size:
        message = f"{count} digits in base {kind.entries} are more than {size} bytes hold"
        faults.add("base_n_capacity", "packed_count", message, f"{kind.entries}^n <= 256^{size}", count)


def _check_sparse(kind: Sparse, shape: Shape, faults: Faults) -> None:
    if not is_float(kind.outlier_data_type):
        expected = "a floating-point scalar"
        faults.add(
            "outliers_illegal", "outlier_data_type", "holds no numbers", expected, kind.outlier_data_type
        )
    if kind.outliers > math.prod(shape):
        message = "more than the tensor has values"
        faults.add("outliers_illegal", "outliers", message, math.prod(shape), kind.outliers)
    for part in ("outlier_threshold", "outlier_ratio"):
        if not finite(getattr(kind, part)):
            faults.add("outliers_illegal", part, "not finite", "a number", getattr(kind, part))


def _check_log(kind: Log, shape: Shape, faults: Faults) -> None:
    if not 1 <= kind.bits <= 16:
        faults.add("bits_out_of_range", "bits", "no width of a code", "1 to 16", kind.bits)
    if not finite(kind.base) or kind.base <= 0 or kind.base == 1:
        faults.add("log_illegal", "base", "no base of a logarithm", "above 0, not 1", kind.base)
    if not finite(kind.offset):
        faults.add("log_illegal", "offset", "not finite", "a number", kind.offset)


def _check_cast(kind: Cast, shape: Shape, faults: Faults) -> None:
    if kind.storage_type not in LEAVES:
        faults.add("storage_type", "storage_type", "no scalar", ", ".join(LEAVES.names), kind.storage_type)


_CHECKS: Final[dict[type, Callable[[Any, Shape, Faults], None]]] = {
    Linear: _check_linear,
    Codebook: _check_codebook,
    FloatingPoint: check_floating_point,
    Sparse: _check_sparse,
    Log: _check_log,
    Function: check_function,
    Tiling: check_tiling,
    Cast: _check_cast,
    StructuredBlock: check_structured_block,
}
