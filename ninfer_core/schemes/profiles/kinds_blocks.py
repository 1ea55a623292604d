"""What small floats, structured blocks and custom functions become, and the tables of codebooks."""

import math

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.model import ORDERS, ROLES, FloatingPoint, Function, StructuredBlock
from ninfer_core.schemes.profiles.parameters import Parameter, scalar, vector
from ninfer_core.schemes.profiles.pieces import (
    Built,
    block_parameters,
    codes_field,
    field_type,
    leaf_array,
    onnx_number,
    scale_field,
    stream_bytes,
)
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


def floating_point(kind: FloatingPoint, dims: Shape, inner: tuple[int, ...]) -> Built:
    """Components, leaves or bytes, with their rules."""
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


def function(kind: Function, values: int, inner: tuple[int, ...]) -> Built:
    """The payload or its blocks, operators in the metadata."""
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
        decoder=kind.decoder,
        encoder=kind.encoder,
    )


def block_count(kind: StructuredBlock, shape: Shape) -> int:
    """How many blocks hold a tensor: of all of it, or of each run along the axis."""
    size = kind.layout.block_size
    if kind.axis is None:
        return -(-math.prod(shape) // size)
    rest = math.prod(length for axis, length in enumerate(shape) if axis != kind.axis)
    return rest * -(-shape[kind.axis] // size)


def structured_block(kind: StructuredBlock, shape: Shape, inner: tuple[int, ...]) -> Built:
    """Blocks or regions, and what makes values of them."""
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


def table_parameter(values: tuple[float, ...], dims: Shape, flat: bool) -> Parameter:
    """The table of a codebook: `codebook`, or `codebooks` where several are added; dimensions of one are left out."""
    books, _, vector_size = dims
    shaped = dims[0 if books > 1 else 1 : 3 if vector_size > 1 else 2]
    name = "codebooks" if books > 1 else "codebook"
    return Parameter(name, "FLOAT", (len(values),) if flat else shaped, values)
