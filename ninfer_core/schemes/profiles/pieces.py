"""Pieces that the translations of several kinds share: repeated types, streams of codes, scales, blocks, rotations."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.model import (
    ROLES,
    BlockField,
    BlockLayout,
    Quantization,
    Rotation,
    Scale,
    ScaleField,
    ScaleFloat,
    ScaleInt,
    ScaleVector,
)
from ninfer_core.schemes.profiles.parameters import Parameter, scalar, vector
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.model import (
    Array,
    Component,
    Field,
    Leaf,
    PackedArray,
    Structure,
    Type,
)


@dataclass(slots=True)
class Built:
    """What a profile of one kind becomes: payload fields or a bare type, its parameters, and more metadata.

    Parameters without a structure to stand in go to the metadata.
    """

    fields: list[Field] = field(default_factory=list)
    parameters: list[Parameter] = field(default_factory=list)
    bare: Type | None = None
    metadata: list[tuple[str, str]] = field(default_factory=list)
    dims_param: tuple[str, ...] = ()
    dims: tuple[int, ...] = ()
    decoder: bytes | None = None
    encoder: bytes | None = None


def repeated(element: Type, dims: Sequence[int]) -> Type:
    """An array of arrays, the first of `dims` outermost."""
    for count in reversed(dims):
        element = Array(element, count)
    return element


def leaf_array(name: str, leaf: str, dims: Sequence[int]) -> Field:
    """A field of scalars."""
    return Field(name, repeated(Leaf(leaf), dims))


def stream_bytes(count: int, bits: int) -> int:
    """The bytes of a low-bits-first stream of codes (R1)."""
    return -(-count * bits // 8)


def codes_field(name: str, leaf: str, bits: int, dims: Shape, outer: Shape = ()) -> Field:
    """Codes as leaves of their own width, else as a stream in UINT8 for each index of `outer`."""
    if LEAVES[leaf].bits == bits:
        return leaf_array(name, leaf, outer + dims)
    return leaf_array(name, "UINT8", (*outer, stream_bytes(math.prod(dims), bits)))


def scale_field(scale: Scale | None, channels: int) -> list[Field]:
    """The payload field of a scale that is stored, if it is."""
    return [leaf_array("scale", scale.type, (channels,))] if isinstance(scale, ScaleField) else []


def scale_parameters(scale: Scale | None) -> list[Parameter]:
    """The constant of a scale that is shared; INT32 keeps which member of the oneof was selected."""
    match scale:
        case ScaleFloat(value=value):
            return [scalar("scale", "FLOAT", value)]
        case ScaleInt(exponent=exponent):
            return [scalar("scale", "INT32", exponent)]
        case ScaleVector(values=values):
            return [vector("scale", "FLOAT", values)]
    return []


def onnx_number(name: str) -> int:
    """The number of a scalar in TensorProto.DataType."""
    return LEAVES[name].onnx


def rotation_parameters(rotation: Rotation | None, prefix: str) -> list[Parameter]:
    """Constants of a rotation; a Hadamard one stores no matrix (R11)."""
    if rotation is None:
        return []
    number = ("HADAMARD", "PLAIN").index(rotation.matrix_type)
    parameters = [scalar(f"{prefix}_type", "INT32", number), vector(f"{prefix}_dims", "INT32", rotation.dims)]
    if rotation.matrix_type == "PLAIN":
        parameters.append(Parameter(prefix, "FLOAT", rotation.dims, rotation.matrix))
    return parameters


def shared_parameters(quantization: Quantization) -> list[Parameter]:
    """Constants that every kind may have: rotations and the type before quantization."""
    parameters = rotation_parameters(quantization.pre_rotation, "pre_rotation")
    parameters += rotation_parameters(quantization.post_rotation, "post_rotation")
    if quantization.data_type is not None:
        parameters.append(scalar("data_type", "INT32", onnx_number(quantization.data_type)))
    return parameters


def padding(bits: int, index: int | None = None) -> Field:
    """A field of bits that hold nothing."""
    name = "padding" if index is None else f"padding_{index}"
    if bits <= 64:
        return Field(name, PackedArray((Component("zero", bits),), 1))
    return Field(name, PackedArray((Component("zero", 1),), bits))


def field_type(item: BlockField) -> Type:
    """The physical type of a block's field: leaves of its width, or a carrier of whole words (R1)."""
    if item.carrier:
        return Array(Leaf(item.carrier), item.bits // LEAVES[item.carrier].bits)
    leaf = Leaf(item.data_type or f"UINT{item.bit_width}")
    return leaf if item.scalar else Array(leaf, item.count)


def block_fields(layout: BlockLayout) -> list[Field]:
    """The fields of a block with explicit padding in the place of offsets and of the stated bytes."""
    fields: list[Field] = []
    end = pads = 0
    for item in (*layout.fields, None):
        begin = 8 * layout.bytes_per_block if item is None else item.bit_offset
        if begin > end:
            fields.append(padding(begin - end, pads))
            pads += 1
        if item is not None:
            fields.append(Field(item.name, field_type(item)))
            end = item.bit_offset + item.bits
    return fields


def block_parameters(layout: BlockLayout, described: bool) -> list[Parameter]:
    """What a block's structure does not say by itself: roles that are no names, widths inside of carriers, its size.

    `described`: all of it, as constants; otherwise what is needed, for the metadata.
    """
    parameters: list[Parameter] = []
    if described or any(item.name != item.role.lower() for item in layout.fields):
        numbers = tuple(ROLES.index(item.role) for item in layout.fields)
        parameters.append(vector("field_roles", "INT32", numbers))
    for item in layout.fields:
        if item.carrier:
            parameters.append(scalar(f"{item.name}_bit_width", "INT32", item.bit_width))
            parameters.append(scalar(f"{item.name}_count", "INT32", item.count))
    if described:
        parameters.append(scalar("block_size", "INT32", layout.block_size))
    return parameters


def structure(fields: Sequence[Field], parameters: Sequence[Parameter]) -> Structure:
    """Payload first, constants after it."""
    return Structure((*fields, *(parameter.field for parameter in parameters)))
