"""Struct types back into profiles: the inverse of the translation, which proves what it read by translating it again."""

import math
from dataclasses import dataclass, replace

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.faults import refusal
from ninfer_core.schemes.profiles.level import Level, level_of
from ninfer_core.schemes.profiles.model import (
    Linear,
    Quantization,
    Rotation,
    ScaleVector,
    StructuredBlock,
    Tiling,
)
from ninfer_core.schemes.profiles.recognize import kind_of
from ninfer_core.schemes.profiles.translate import translate
from ninfer_core.schemes.structs.model import (
    Array,
    Declaration,
    Declared,
    Field,
    PackedArray,
    Reference,
    Structure,
    Type,
)
from ninfer_core.schemes.structs.sizes import size_bits

MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Description:
    """A profile, and a logical shape that its struct type holds exactly."""

    quantization: Quantization
    shape: Shape


def describe(declared: Declared) -> Quantization:
    """The profile that a struct type is the translation of. Raises: StructFault, SchemeRefused."""
    return description(declared).quantization


def description(declared: Declared) -> Description:
    """The profile with a shape that fits. Raises: StructFault, SchemeRefused."""
    size_bits(declared)  # the type itself is judged first; what follows may rely on it
    quantization, shape = _read(declared, declared.root, 0)
    again = translate(quantization, shape)
    if normalized(again) != normalized(declared):
        name = quantization.name
        message = "a count or a constant is not the one that its profile and size give"
        raise refusal(
            name, "redundant_differs", "", message, "the translation of the profile", "another type"
        )
    return Description(quantization, shape)


def _read(declared: Declared, index: int, depth: int, in_tile: bool = False) -> tuple[Quantization, Shape]:
    level = level_of(declared.declarations[index])
    for name in ("tile_shape", "axes", "perm") if in_tile else ():
        level.read.constants.pop(name, None)  # the tiling above reads them
    if depth > MAX_DEPTH:
        raise level.unknown("profiles are not nested as deep")
    pre, post = _rotation(level, "pre_rotation"), _rotation(level, "post_rotation")
    data_type = level.scalar_type("data_type") if level.has("data_type") else None
    kind, shape = kind_of(level, lambda inner, tiled: _read(declared, inner, depth + 1, tiled), declared)
    if level.payload or level.read.constants:
        left = ", ".join([*level.payload, *level.read.constants])
        raise level.unknown(f"no {type(kind).__name__} has {left}")
    unstated = () if level.bare else tuple(level.read.kept - {"elem_quant"})
    quantization = Quantization(
        kind,
        level.name,
        data_type,
        level.declaration.doc,
        tuple(level.metadata),
        pre,
        post,
        _own(kind, unstated),
    )
    return quantization, _shaped(quantization, shape)


def _own(kind: object, unstated: tuple[str, ...]) -> tuple[str, ...]:
    """Without the parameters that the translation keeps in the metadata by itself."""
    if isinstance(kind, StructuredBlock) and not kind.described:
        names = {"field_roles"} | {
            f"{item.name}_{what}" for item in kind.layout.fields for what in ("bit_width", "count")
        }
        return tuple(name for name in unstated if name not in names)
    return unstated


def _rotation(level: Level, prefix: str) -> Rotation | None:
    if not level.has(f"{prefix}_type"):
        return None
    number = level.need(f"{prefix}_type", "INT32")
    dims = level.list(f"{prefix}_dims", "INT32")
    if number not in (0, 1):
        raise level.unknown(f"{prefix}_type {number} is no rotation")
    matrix = level.list(prefix, "FLOAT") if number == 1 else ()
    return Rotation("PLAIN" if number else "HADAMARD", dims, matrix)


def _shaped(quantization: Quantization, shape: Shape) -> Shape:
    """The shape with the dimensions that an axis or a rotation asks for; the number of values stays."""
    values = math.prod(shape)
    kind = quantization.kind
    if isinstance(kind, Linear) and kind.axis >= 0 and len(shape) <= 1:
        shape = _with(kind.axis, _channels(kind), values)
    if isinstance(kind, StructuredBlock) and kind.axis is not None:
        shape = (*(1,) * kind.axis, values)
    pre, post = quantization.pre_rotation, quantization.post_rotation
    for rotation, axis in ((pre, -1), (post, -2 if post is not None and len(post.dims) == 2 else -1)):
        if rotation is None or not rotation.dims or rotation.dims[0] <= 0:
            continue
        size = rotation.dims[0]
        if isinstance(kind, Tiling) and kind.axes and len(shape) >= -axis:
            sizes = list(shape)
            sizes[axis] = min(size, sizes[axis])
            shape = tuple(sizes)
        elif len(shape) < -axis or shape[axis] != size:  # what does not fill a row is padding
            shape = (values // size, size) if axis == -1 else (size, values // size)
    return shape


def _channels(kind: Linear) -> int:
    if isinstance(kind.scale, ScaleVector):
        return len(kind.scale.values)
    return len(kind.zero_point) if isinstance(kind.zero_point, tuple) else 0


def _with(axis: int, channels: int, values: int) -> Shape:
    """As many of `values` values as give that many indices of the axis; any number where it is not known."""
    if not channels:
        return (*(1,) * axis, values)
    if axis == 0:
        return (channels, values // channels)
    return (*(1,) * (axis - 1), values // channels, channels)


def normalized(declared: Declared) -> tuple[tuple[Declaration, ...], tuple[int, ...]]:
    """What a root reaches, innermost first and numbered anew, without decoders and encoders; equal for equal types."""
    order: list[Declaration] = []
    places: dict[int, int] = {}

    def visit(index: int) -> int:
        if index not in places:
            declaration = declared.declarations[index]
            type_ = None if declaration.type is None else renumbered(declaration.type)
            plain = replace(declaration, type=type_, decoder=None, encoder=None)
            if plain in order:
                places[index] = order.index(plain)
            else:
                order.append(plain)
                places[index] = len(order) - 1
        return places[index]

    def renumbered(type_: Type) -> Type:
        match type_:
            case Reference(index=index):
                return Reference(visit(index))
            case Array(element=element, count=count):
                return Array(renumbered(element), count)
            case Structure(fields=fields):
                return Structure(tuple(_renumbered_field(item) for item in fields))
            case PackedArray():
                return type_
        return type_

    def _renumbered_field(item: Field) -> Field:
        return item if item.type is None else replace(item, type=renumbered(item.type))

    visit(declared.root)
    return tuple(order), declared.dims
