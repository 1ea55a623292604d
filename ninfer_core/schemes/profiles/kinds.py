"""What each of the nine kinds becomes: payload fields in order and parameters (section 7, one function for each kind)."""

import math

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.kinds_blocks import (
    floating_point,
    function,
    structured_block,
    table_parameter,
)
from ninfer_core.schemes.profiles.model import (
    Cast,
    Codebook,
    FloatingPoint,
    Function,
    Kind,
    Linear,
    Log,
    ScaleFloat,
    Sparse,
    StructuredBlock,
    Tiling,
    ZeroField,
    ZeroPoint,
)
from ninfer_core.schemes.profiles.parameters import Parameter, scalar, vector
from ninfer_core.schemes.profiles.pieces import (
    Built,
    codes_field,
    leaf_array,
    onnx_number,
    repeated,
    scale_field,
    scale_parameters,
    stream_bytes,
)
from ninfer_core.schemes.profiles.tiles import cut
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.model import (
    Array,
    Field,
    Leaf,
    Reference,
)


def built(kind: Kind, shape: Shape, tile: Shape | None, inner: tuple[int, ...]) -> Built:
    """A legal profile of one kind for a tensor of `shape`; `inner` are the declarations it refers to.

    Codes that are leaves keep the dims of a `tile`; elsewhere they are flat.
    """
    dims = (math.prod(shape),) if tile is None else tile
    match kind:
        case Linear():
            return _linear(kind, shape, dims)
        case Codebook():
            return _codebook(kind, math.prod(shape))
        case FloatingPoint():
            return floating_point(kind, dims, inner)
        case Sparse():
            return _sparse(kind, inner[0])
        case Log():
            return _log(kind, math.prod(shape))
        case Function():
            return function(kind, math.prod(shape), inner)
        case Tiling():
            return _stacked(kind, shape) if kind.stacked else _tiling(kind, shape, inner)
        case Cast():
            return Built(bare=repeated(Leaf(kind.storage_type), dims))
        case StructuredBlock():
            return structured_block(kind, shape, inner)


def leaf_of(kind: Linear) -> str:
    """The leaf of the codes: as stated, or the storage type where `bits` is its own width, else bytes."""
    return kind.leaf or (kind.storage_type if LEAVES[kind.storage_type].bits == kind.bits else "UINT8")


def _linear_parameters(kind: Linear) -> list[Parameter]:
    return [
        scalar("storage_type", "INT32", onnx_number(kind.storage_type)),
        scalar("bits", "INT32", kind.bits),
        scalar("symmetric", "BOOL", kind.symmetric),
    ]


def _zero_parameters(zero: ZeroPoint) -> list[Parameter]:
    if isinstance(zero, ZeroField):
        return []
    if isinstance(zero, tuple):
        return [vector("zero_point", "INT64", zero)]
    return [scalar("zero_point", "INT64", zero)]


def _linear(kind: Linear, shape: Shape, dims: Shape) -> Built:
    channels = shape[kind.axis] if kind.axis >= 0 else 1
    zero, stored = kind.zero_point, scale_field(kind.scale, channels)
    if isinstance(zero, ZeroField):
        stored.append(leaf_array("zero_point", zero.type, (channels,)))
    return Built(
        [codes_field("values", leaf_of(kind), kind.bits, dims), *stored],
        [
            *_linear_parameters(kind),
            *scale_parameters(kind.scale),
            *_zero_parameters(zero),
            scalar("axis", "INT32", kind.axis),
        ],
    )


def _stacked(kind: Tiling, shape: Shape) -> Built:
    """Linear tiles that share one array of codes; scales and zero points are vectors over the tiles (GPTQ example)."""
    tiles = cut(kind, shape)
    linear = [element.kind for element in kind.elem_quant if isinstance(element.kind, Linear)]
    first = linear[0]
    scales = tuple(item.scale.value for item in linear if isinstance(item.scale, ScaleFloat))
    zeros = tuple(item.zero_point for item in linear)
    return Built(
        [codes_field("values", leaf_of(first), first.bits, tiles.tile, (tiles.count,))],
        [
            vector("scales", "FLOAT", scales),
            vector("zero_points", "INT64", zeros),
            *tile_parameters(kind),
            *_linear_parameters(first),
            scalar("axis", "INT32", first.axis),
        ],
    )


def _codebook(kind: Codebook, values: int) -> Built:
    vectors = values // kind.vector
    if kind.index_bits == 8 and kind.books > 1:
        indices = leaf_array("indices", "UINT8", (vectors, kind.books))
    elif kind.index_bits:
        indices = leaf_array("indices", "UINT8", (stream_bytes(vectors * kind.books, kind.index_bits),))
    else:
        units = -(-vectors * kind.books // (kind.packed_count or 1))
        indices = leaf_array("indices", "UINT8", (units * (kind.packed_bytes or 0),))
    dims = (kind.books, kind.entries, kind.vector)
    parameters = [table_parameter(kind.codebook_data, dims, kind.flat), *scale_parameters(kind.scale)]
    for name in (
        "packed_count",
        "packed_bytes",
        "num_codebooks",
        "codebook_size",
        "vector_size",
        "index_bits",
    ):
        if (number := getattr(kind, name)) is not None:
            parameters.append(scalar(name, "INT32", number))
    return Built([indices, *scale_field(kind.scale, 1)], parameters)


def _sparse(kind: Sparse, base: int) -> Built:
    prefix = "outlier_" if kind.prefixed else ""
    parameters = [
        scalar("outlier_threshold", "FLOAT", kind.outlier_threshold),
        scalar("outlier_ratio", "FLOAT", kind.outlier_ratio),
    ]
    if kind.prefixed:
        parameters.insert(0, scalar("outlier_data_type", "INT32", onnx_number(kind.outlier_data_type)))
    fields = [
        Field("base", Reference(base)),
        leaf_array(f"{prefix}indices", "INT64", (kind.outliers,)),
        leaf_array(f"{prefix}values", kind.outlier_data_type, (kind.outliers,)),
    ]
    return Built(fields, parameters)


def _log(kind: Log, values: int) -> Built:
    leaf = f"UINT{kind.bits}" if kind.bits in (2, 4, 8, 16) else "UINT8"
    fields = [codes_field("codes", leaf, kind.bits, (values,))]
    if kind.has_sign:
        fields.append(leaf_array("signs", "UINT8", (stream_bytes(values, 1),)))
    return Built(
        fields,
        [
            scalar("bits", "INT32", kind.bits),
            scalar("base", "FLOAT", kind.base),
            scalar("offset", "FLOAT", kind.offset),
            scalar("has_sign", "BOOL", kind.has_sign),
        ],
    )


def tile_parameters(kind: Tiling) -> list[Parameter]:
    """Shape, axes and order of tiles as they were stated."""
    parameters = [vector("tile_shape", "INT64", kind.tile_shape)]
    if kind.axes:
        parameters.append(vector("axes", "INT32", kind.axes))
    if kind.perm:
        parameters.append(vector("perm", "INT32", kind.perm))
    return parameters


def runs(tiles: int, quantizations: int) -> list[tuple[int, int]]:
    """The runs of tiles in storage order that one field each holds: the quantization's place in the list, the count (R17)."""
    if quantizations == 1:
        return [(0, tiles)]
    return [(index % quantizations, 1) for index in range(tiles)]


def _tiling(kind: Tiling, shape: Shape, inner: tuple[int, ...]) -> Built:
    tiles = cut(kind, shape)
    parameters = [] if kind.shape_in_tile else tile_parameters(kind)
    if len(inner) == 1:
        return Built([Field(kind.field, repeated(Reference(inner[0]), tiles.dims))], parameters)
    fields = [
        Field(f"{kind.field}_{number}", Array(Reference(inner[place]), count))
        for number, (place, count) in enumerate(runs(tiles.count, len(inner)))
    ]
    made = Built(fields, parameters)
    if tiles.count != len(inner):  # the cycle itself is spelled out by the fields; its length is only kept
        made.metadata.append(scalar("elem_quant", "INT32", len(inner)).entry)
    return made
