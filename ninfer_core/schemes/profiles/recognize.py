"""Which kind a declaration is, by what it holds, and its parameters; sizes come with it as a logical shape that fits."""

import math
from typing import Any

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.level import Level, peeled
from ninfer_core.schemes.profiles.model import (
    Cast,
    Codebook,
    Kind,
    Linear,
    Log,
    Quantization,
    Scale,
    ScaleField,
    ScaleFloat,
    ScaleInt,
    ScaleVector,
    Sparse,
    Tiling,
    ZeroField,
    ZeroPoint,
)
from ninfer_core.schemes.profiles.recognize_blocks import function, structured_block
from ninfer_core.schemes.profiles.recognize_floats import floating_point
from ninfer_core.schemes.profiles.recognize_tiles import Inner, tiling
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.model import Declared, Leaf, PackedArray, Reference


def kind_of(level: Level, inner: Inner, declared: Declared) -> tuple[Kind, Shape]:
    """The kind of a declaration and a shape of as many values as it holds. Raises: SchemeRefused."""
    if level.bare:
        return _bare(level, declared)
    payload = level.payload
    if "payload" in payload or ("blocks" in payload and level.has("storage_type")):
        return function(level, declared)
    if level.has("scales"):
        return _stacked(level)
    if level.has("symmetric") and "values" in payload:
        return _linear(level)
    if "indices" in payload and (level.has("codebook") or level.has("codebooks")):
        return _codebook(level)
    if level.has("outlier_threshold"):
        return _sparse(level, inner)
    if "codes" in payload and level.has("base"):
        return _log(level)
    if level.has("block_size") or level.has("index_fields") or _holds_described(level, declared):
        return structured_block(level, declared)
    unit = None if level.has("tile_shape") else _unit(level, declared)
    if level.has("exponent_bias") or unit is not None:
        return floating_point(level, unit, declared)
    return tiling(level, inner, declared)


def _holds_described(level: Level, declared: Declared) -> bool:
    """Whether its `blocks` are of a declaration that names the roles of its fields."""
    element = peeled(level.payload["blocks"])[0] if "blocks" in level.payload else None
    if not isinstance(element, Reference):
        return False
    type_ = declared.declarations[element.index].type
    return any(item.name == "field_roles" for item in getattr(type_, "fields", ()))


def _bare(level: Level, declared: Declared) -> tuple[Kind, Shape]:
    type_ = level.declaration.type
    if isinstance(type_, PackedArray):
        return floating_point(level, None, declared)
    if type_ is None:
        raise level.unknown("it has no type")
    element, counts = peeled(type_)
    if isinstance(element, Leaf):
        return Cast(element.name), counts
    return structured_block(level, declared)


def _codes(level: Level, name: str, bits: int) -> tuple[str | None, tuple[int, ...], int]:
    """The leaf of codes, None for a stream in UINT8; the counts; the number of codes that it can hold."""
    leaf, counts = level.leaf(name)
    if LEAVES[leaf].bits == bits:
        return leaf, counts, math.prod(counts)
    if leaf != "UINT8" or not counts or not 1 <= bits <= 16:
        raise level.differs("bits", f"{name} is {leaf}", LEAVES[leaf].bits, bits)
    return None, counts, math.prod(counts[:-1]) * (8 * counts[-1] // bits)


def _override(leaf: str | None, storage_type: str, bits: int) -> str | None:
    """The leaf to state, where it is not the one by default."""
    default = storage_type if LEAVES[storage_type].bits == bits else None
    return None if leaf == default else leaf or "UINT8"


def _scale(level: Level) -> Scale | None:
    if "scale" in level.payload:
        return ScaleField(level.leaf("scale")[0])
    parameter = level.read.constants.get("scale")
    if parameter is None:
        return None
    if parameter.dims == () and parameter.dtype == "INT32":
        return ScaleInt(level.need("scale", "INT32"))
    if parameter.dims == ():
        return ScaleFloat(level.need("scale", "FLOAT"))
    return ScaleVector(level.list("scale", "FLOAT"))


def _zero_point(level: Level) -> ZeroPoint:
    if "zero_point" in level.payload:
        return ZeroField(level.leaf("zero_point")[0])
    held = level.read.constants.get("zero_point")
    if held is not None and held.dims == ():
        one: int = level.need("zero_point", "INT64")
        return one
    return level.list("zero_point", "INT64")


def _linear(level: Level) -> tuple[Kind, Shape]:
    storage_type, bits = level.scalar_type("storage_type"), level.need("bits", "INT32")
    symmetric = level.need("symmetric", "BOOL")
    channels: tuple[int, ...] = ()
    for name in ("scale", "zero_point"):
        if name in level.payload:
            channels = peeled(level.payload[name])[1]
    scale = _scale(level)
    if scale is None:
        raise level.unknown("there is no scale")
    point = _zero_point(level)
    leaf, counts, values = _codes(level, "values", bits)
    axis = level.axis()
    kind = Linear(storage_type, bits, symmetric, scale, point, axis, _override(leaf, storage_type, bits))
    if axis >= 0 and channels and channels[0] and len(counts) == 1:
        shape: Shape = (channels[0], values // channels[0])
        return kind, shape if axis == 0 else (*(1,) * (axis - 1), *reversed(shape))
    return kind, counts if leaf is not None else (values,)


def _stacked(level: Level) -> tuple[Kind, Shape]:
    storage_type, bits = level.scalar_type("storage_type"), level.need("bits", "INT32")
    symmetric, axis = level.need("symmetric", "BOOL"), level.axis()
    tile_shape = level.list("tile_shape", "INT64")
    scales, zeros = level.list("scales", "FLOAT"), level.list("zero_points", "INT64")
    leaf, counts, _ = _codes(level, "values", bits)
    if len(counts) != 2 or not len(scales) == len(zeros) == counts[0] or len(tile_shape) != 1:
        raise level.differs("scales", "one for each tile", counts, [len(scales), len(zeros)])
    leaf = _override(leaf, storage_type, bits)
    elements = tuple(
        Quantization(Linear(storage_type, bits, symmetric, ScaleFloat(scale), zero, axis, leaf))
        for scale, zero in zip(scales, zeros, strict=True)
    )
    return Tiling(tile_shape, elements, stacked=True), (counts[0] * tile_shape[0],)


def _codebook(level: Level) -> tuple[Kind, Shape]:
    name = "codebooks" if level.has("codebooks") else "codebook"
    flat = len(level.read.constants[name].dims) == 1
    data = level.list(name, "FLOAT")
    scale = _scale(level)
    numbers: dict[str, Any] = {
        what: level.need(what, "INT32") if level.has(what) else None
        for what in ("packed_count", "packed_bytes", "num_codebooks", "codebook_size", "vector_size", "index_bits")
    }  # fmt: skip
    leaf, counts = level.leaf("indices")
    if leaf != "UINT8" or any(number is not None and number < 0 for number in numbers.values()):
        raise level.unknown("indices are bytes, and counts not negative")
    shaped = (numbers["num_codebooks"] or 1) * (numbers["vector_size"] or 1) > 1
    kind = Codebook(data, scale, **numbers, flat=flat and shaped)
    size = math.prod(counts)
    if kind.index_bits:
        indices = 8 * size // kind.index_bits
    elif kind.packed_count and kind.packed_bytes:
        indices = size // kind.packed_bytes * kind.packed_count
    else:
        raise level.unknown("how indices are packed is not said")
    return kind, (indices // kind.books * kind.vector,)


def _sparse(level: Level, inner: Inner) -> tuple[Kind, Shape]:
    prefixed = "outlier_indices" in level.payload
    prefix = "outlier_" if prefixed else ""
    index, counts = level.reference("base")
    leaf, outliers = level.leaf(f"{prefix}indices")
    values, also = level.leaf(f"{prefix}values")
    if leaf != "INT64" or counts or len(outliers) != 1 or also != outliers:
        raise level.unknown("one base, and as many INT64 indices as values")
    if prefixed and (stated := level.scalar_type("outlier_data_type")) != values:
        raise level.differs("outlier_data_type", "the values have another type", values, stated)
    base, shape = inner(index, False)
    threshold, ratio = level.need("outlier_threshold", "FLOAT"), level.need("outlier_ratio", "FLOAT")
    return Sparse(base, values, threshold, ratio, outliers[0], prefixed), shape


def _log(level: Level) -> tuple[Kind, Shape]:
    bits, has_sign = level.need("bits", "INT32"), level.need("has_sign", "BOOL")
    base, offset = level.need("base", "FLOAT"), level.need("offset", "FLOAT")
    _, _, values = _codes(level, "codes", bits)
    if has_sign is not ("signs" in level.payload):
        raise level.differs("has_sign", "the sign plane says otherwise", "signs" in level.payload, has_sign)
    if has_sign:
        leaf, counts = level.leaf("signs")
        if leaf != "UINT8" or len(counts) != 1:
            raise level.unknown("a sign plane is bytes")
        values = min(values, 8 * counts[0])
    return Log(bits, base, offset, has_sign), (values,)


def _unit(level: Level, declared: Declared) -> tuple[str, int, int] | None:
    """The one field that repeats a declaration of packed components, with its index and count."""
    if len(level.payload) != 1:
        return None
    ((name, type_),) = level.payload.items()
    element, counts = peeled(type_)
    if not isinstance(element, Reference) or len(counts) != 1:
        return None
    type_ = declared.declarations[element.index].type  # type: ignore[assignment]
    names = {item.name for item in getattr(type_, "fields", ())}
    packs = names & {"packed", "sign_exponent", "exponent"} and "exponent_bias" in names
    return (name, element.index, counts[0]) if packs else None
