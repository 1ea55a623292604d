"""What each of the nine kinds becomes: payload fields in order and parameters (section 7, one function for each kind)."""

import math

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.model import (
    ORDERS,
    ROLES,
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
)
from ninfer_core.schemes.profiles.parameters import Parameter, scalar, vector
from ninfer_core.schemes.profiles.pieces import (
    Built,
    block_parameters,
    codes_field,
    field_type,
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
    Component,
    Dim,
    Field,
    Leaf,
    PackedArray,
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
            return _floating_point(kind, dims, inner)
        case Sparse():
            return _sparse(kind, inner[0])
        case Log():
            return _log(kind, math.prod(shape))
        case Function():
            return _function(kind, math.prod(shape), inner)
        case Tiling():
            return _stacked(kind, shape) if kind.stacked else _tiling(kind, shape, inner)
        case Cast():
            return Built(bare=repeated(Leaf(kind.storage_type), dims))
        case StructuredBlock():
            return _structured_block(kind, shape, inner)


def leaf_of(kind: Linear) -> str:
    """The leaf of the codes: as stated, or the storage type where `bits` is its own width, else bytes."""
    return kind.leaf or (kind.storage_type if LEAVES[kind.storage_type].bits == kind.bits else "UINT8")


def _linear_parameters(kind: Linear) -> list[Parameter]:
    return [
        scalar("storage_type", "INT32", onnx_number(kind.storage_type)),
        scalar("bits", "INT32", kind.bits),
        scalar("symmetric", "BOOL", kind.symmetric),
    ]


def _linear(kind: Linear, shape: Shape, dims: Shape) -> Built:
    channels = shape[kind.axis] if kind.axis >= 0 else 1
    zero = kind.zero_point
    return Built(
        [codes_field("values", leaf_of(kind), kind.bits, dims), *scale_field(kind.scale, channels)],
        [
            *_linear_parameters(kind),
            *scale_parameters(kind.scale),
            vector("zero_point", "INT64", zero)
            if isinstance(zero, tuple)
            else scalar("zero_point", "INT64", zero),
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


def table_parameter(values: tuple[float, ...], dims: Shape, flat: bool) -> Parameter:
    """The table of a codebook: `codebook`, or `codebooks` where several are added; dimensions of one are left out."""
    books, _, vector_size = dims
    shaped = dims[0 if books > 1 else 1 : 3 if vector_size > 1 else 2]
    name = "codebooks" if books > 1 else "codebook"
    return Parameter(name, "FLOAT", (len(values),) if flat else shaped, values)


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


def _components(kind: FloatingPoint) -> list[Component]:
    widths = (("sign", kind.sign_bits), ("exponent", kind.exponent_bits), ("mantissa", kind.mantissa_bits))
    return [Component(name, bits) for name, bits in widths if bits]


def _packed(kind: FloatingPoint, count: int) -> list[Field]:
    """The components of `count` values, together or each for itself."""
    parts = _components(kind)
    if not kind.split_storage:
        return [Field("packed", PackedArray(tuple(parts), count))]
    name = "sign_exponent" if kind.sign_bits else "exponent"
    width = kind.mantissa_bits
    apart = Array(Leaf(f"UINT{width}"), count) if width in (2, 4, 8) else PackedArray((parts[-1],), count)
    return [Field(name, PackedArray(tuple(parts[:-1]), count)), Field("mantissa", apart)]


def _float_parameters(kind: FloatingPoint) -> list[Parameter]:
    rules = [
        scalar("exponent_bias", "INT32", kind.exponent_bias),
        scalar("has_inf", "BOOL", kind.has_inf),
        scalar("has_nan", "BOOL", kind.has_nan),
    ]
    if kind.carrier == "components" and not kind.repeated:
        return rules
    names = ("sign_bits", "exponent_bits", "mantissa_bits", "packed_count", "packed_bytes")
    widths = [scalar(name, "INT32", getattr(kind, name)) for name in names]
    return [*widths[:3], *rules, scalar("split_storage", "BOOL", kind.split_storage), *widths[3:]]


def unit_of(kind: FloatingPoint) -> tuple[list[Field], list[Parameter]]:
    """Fields and parameters of the declaration of one unit."""
    return _packed(kind, kind.packed_count), _float_parameters(kind)


def _floating_point(kind: FloatingPoint, dims: Shape, inner: tuple[int, ...]) -> Built:
    values = math.prod(dims)
    if kind.bare:
        parametric = kind.parameter is not None
        type_ = PackedArray(tuple(_components(kind)), Dim(0) if parametric else values)
        names, counts = ((kind.parameter or "",), (values,)) if parametric else ((), ())
        return Built([], _float_parameters(kind), type_, dims_param=names, dims=counts)
    if kind.unit is not None:
        units = -(-values // kind.packed_count)
        return Built([Field(kind.unit.field, Array(Reference(inner[0]), units))])
    if kind.carrier == "components":
        held = _packed(kind, values)
    elif kind.carrier == "native" and kind.leaf is not None:
        held = [leaf_array("values", kind.leaf, dims)]
    else:
        held = [leaf_array("values", "UINT8", (stream_bytes(values, kind.bits),))]
    return Built([*held, *scale_field(kind.scale, 1)], _float_parameters(kind))


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


def _function(kind: Function, values: int, inner: tuple[int, ...]) -> Built:
    own = LEAVES[kind.storage_type].bits == kind.bits
    payload = codes_field("payload", kind.storage_type if own else "UINT8", kind.bits, (values,))
    if kind.block_layout is not None:
        payload = Field("blocks", Array(Reference(inner[0]), -(-values // kind.block_layout.block_size)))
    return Built(
        [payload],
        [
            scalar("storage_type", "INT32", onnx_number(kind.storage_type)),
            scalar("bits", "INT32", kind.bits),
        ],
        metadata=[("quantize_op", kind.quantize_op), ("dequantize_op", kind.dequantize_op)],
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


def block_count(kind: StructuredBlock, shape: Shape) -> int:
    """How many blocks hold a tensor: of all of it, or of each run along the axis."""
    size = kind.layout.block_size
    if kind.axis is None:
        return -(-math.prod(shape) // size)
    rest = math.prod(length for axis, length in enumerate(shape) if axis != kind.axis)
    return rest * -(-shape[kind.axis] // size)


def _structured_block(kind: StructuredBlock, shape: Shape, inner: tuple[int, ...]) -> Built:
    layout, blocks = kind.layout, block_count(kind, shape)
    parameters: list[Parameter] = []
    if kind.codebook_data:
        size = kind.codebook_vector_size
        dims = (1, len(kind.codebook_data) // size, size)
        parameters.append(table_parameter(kind.codebook_data, dims, kind.flat))
        parameters.append(scalar("codebook_vector_size", "INT32", size))
        fields = tuple(ROLES.index(term.field) for term in kind.index_formula)
        parameters.append(vector("index_fields", "INT32", fields))
        multipliers = tuple(term.multiplier for term in kind.index_formula)
        parameters.append(vector("index_multipliers", "INT32", multipliers))
    if kind.scatter is not None:
        for name in ("group_size", "vector_size", "stride"):
            parameters.append(scalar(f"scatter_{name}", "INT32", getattr(kind.scatter, name)))
    if kind.storage_order is not None:
        parameters.append(scalar("storage_order", "INT32", ORDERS.index(kind.storage_order)))
    sequential = kind.storage_order == "SEQUENTIAL"
    if sequential:
        own = block_parameters(layout, kind.described)
        parameters += own if kind.described else []
    if not kind.described:
        parameters.append(scalar("block_size", "INT32", layout.block_size))
    if kind.axis is not None:
        parameters.append(scalar("axis", "INT32", kind.axis))
    if kind.bare:
        return Built([], parameters, Array(Reference(inner[0]), blocks))
    if sequential:
        regions = [Field(item.name, Array(field_type(item), blocks)) for item in layout.fields]
        made = Built(regions, parameters)
        made.metadata += [] if kind.described else [item.entry for item in own]
        return made
    return Built([Field("blocks", Array(Reference(inner[0]), blocks))], parameters)
