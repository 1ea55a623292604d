"""Structured blocks and custom functions out of declarations: fields with roles, widths inside of carriers, padding."""

import math

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.level import Level, level_of, peeled
from ninfer_core.schemes.profiles.model import (
    ORDERS,
    ROLES,
    BlockField,
    BlockLayout,
    FieldWeight,
    Function,
    Kind,
    Role,
    Scatter,
    StructuredBlock,
)
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.model import Array, Declared, Dim, Leaf, PackedArray, Type


def function(level: Level, declared: Declared) -> tuple[Kind, Shape]:
    """A custom function and a shape. Raises: SchemeRefused."""
    storage_type, bits = level.scalar_type("storage_type"), level.need("bits", "INT32")
    ops = dict(level.metadata)
    if [key for key, _ in level.metadata[:2]] != ["quantize_op", "dequantize_op"]:
        raise level.unknown("the metadata do not name its operators first")
    del level.metadata[:2]
    quantize_op, dequantize_op = ops["quantize_op"], ops["dequantize_op"]
    decoder, encoder = level.declaration.decoder, level.declaration.encoder
    if "blocks" not in level.payload:
        leaf, counts = level.leaf("payload")
        width = LEAVES[leaf].bits
        if leaf != (storage_type if LEAVES[storage_type].bits == bits else "UINT8") or not 1 <= bits <= 64:
            raise level.differs("bits", f"the payload is {leaf}", width, bits)
        values = math.prod(counts) * width // bits
        return Function(storage_type, bits, quantize_op, dequantize_op, decoder=decoder, encoder=encoder), (
            values,
        )
    index, counts = level.reference("blocks")
    layout, name, described, size = _block(level, level_of(declared.declarations[index]), None)
    if size or len(counts) != 1:
        raise level.unknown("blocks are one array")
    kind = Function(storage_type, bits, quantize_op, dequantize_op, layout, name, described, decoder, encoder)
    return kind, (counts[0] * layout.block_size,)


def structured_block(level: Level, declared: Declared) -> tuple[Kind, Shape]:
    """A structured block and a shape. Raises: SchemeRefused."""
    order = None
    if level.has("storage_order"):
        number = level.need("storage_order", "INT32")
        if number not in (0, 1):
            raise level.unknown(f"storage order {number} is none")
        order = ORDERS[number]
    size = level.need("block_size", "INT32") if level.has("block_size") else None
    flat = level.has("codebook") and len(level.read.constants["codebook"].dims) == 1
    data = level.list("codebook", "FLOAT")
    vector = level.need("codebook_vector_size", "INT32") if level.has("codebook_vector_size") else 0
    fields, multipliers = level.list("index_fields", "INT32"), level.list("index_multipliers", "INT32")
    if len(fields) != len(multipliers) or not all(0 <= number < len(ROLES) for number in fields):
        raise level.differs("index_fields", "one role for each multiplier", len(multipliers), len(fields))
    formula = tuple(
        FieldWeight(ROLES[number], weight) for number, weight in zip(fields, multipliers, strict=True)
    )
    scatter = None
    if level.has("scatter_group_size"):
        scatter = Scatter(
            *(level.need(f"scatter_{part}", "INT32") for part in ("group_size", "vector_size", "stride"))
        )
    axis = level.axis() if level.has("axis") else None
    name = "STRUCTURED_BLOCK_LAYOUT"
    if order == "SEQUENTIAL":
        layout, described, blocks = _regions(level, size)
    else:
        index, counts = _blocks(level)
        inner = level_of(declared.declarations[index])
        layout, name, described, _ = _block(level, inner, size)
        blocks = math.prod(counts)
    kind = StructuredBlock(
        layout, data, vector, formula, scatter, order, axis, name, described, level.bare,
        flat and vector > 1,
    )  # fmt: skip
    return kind, (blocks * layout.block_size,)


def _blocks(level: Level) -> tuple[int, tuple[int, ...]]:
    if level.bare and level.declaration.type is not None:
        level.payload["blocks"] = level.declaration.type
    return level.reference("blocks")


def _block(level: Level, inner: Level, size: int | None) -> tuple[BlockLayout, str, bool, int | None]:
    """The layout of a block's declaration, its name, and whether it describes itself."""
    described = inner.has("block_size") and "block_size" not in inner.read.kept
    if described:
        stated = inner.need("block_size", "INT32")
        if size is not None:
            raise level.differs("block_size", "stated twice", stated, size)
        size, rest = stated, None
    else:
        rest = size
    fields, end = _fields(inner)
    if inner.payload or inner.read.constants or inner.metadata:
        raise level.unknown("the block holds something else as well")
    if size is None:
        size, rest = _implied_size(level, fields), None
    if end % 8:
        raise level.differs("bytes_per_block", "a block is whole bytes", "a multiple of 8", end)
    return BlockLayout(size, end // 8, fields), inner.name, described, rest


def _implied_size(level: Level, fields: tuple[BlockField, ...]) -> int:
    values = next((field.count for field in fields if field.role == "VALUES"), None)
    if values is None:
        raise level.unknown("the size of a block is not said")
    return values


def _roles(level: Level, names: list[str]) -> tuple[Role, ...]:
    if level.has("field_roles"):
        numbers = level.list("field_roles", "INT32")
        if len(numbers) != len(names) or not all(0 <= number < len(ROLES) for number in numbers):
            raise level.differs("field_roles", "one role for each field", len(names), list(numbers))
        return tuple(ROLES[number] for number in numbers)
    known = {role.lower(): role for role in ROLES}
    if not all(name in known for name in names):
        raise level.unknown("the roles of its fields are not said")
    return tuple(known[name] for name in names)


def _fields(level: Level) -> tuple[tuple[BlockField, ...], int]:
    """The fields with their offsets, padding left out, and the bits of all of them."""
    names = [name for name in level.payload if not name.startswith("padding_")]
    roles = dict(zip(names, _roles(level, names), strict=True))
    fields: list[BlockField] = []
    end = 0
    for name, type_ in list(level.payload.items()):
        level.part(name)
        if name not in roles:
            end += _padding_bits(level, type_)
            continue
        found = _field(level, name, roles[name], type_, end)
        fields.append(found)
        end += found.bits
    return tuple(fields), end


def _padding_bits(level: Level, type_: Type) -> int:
    if not isinstance(type_, PackedArray) or isinstance(type_.count, Dim):
        raise level.unknown("padding is packed bits")
    return type_.count * sum(part.bits for part in type_.components)


def _field(level: Level, name: str, role: Role, type_: Type, offset: int) -> BlockField:
    scalar = isinstance(type_, Leaf)
    element, counts = peeled(type_)
    if not isinstance(element, Leaf) or len(counts) != (0 if scalar else 1):
        raise level.unknown(f"{name} is no array of scalars")
    leaf, count = LEAVES[element.name], math.prod(counts)
    own = name if name != role.lower() else ""
    if level.has(f"{name}_bit_width"):
        width, stated = level.need(f"{name}_bit_width", "INT32"), level.need(f"{name}_count", "INT32")
        if width * stated != leaf.bits * count:
            message = f"{count} x {leaf.name} hold other bits"
            raise level.differs(f"{name}_bit_width", message, leaf.bits * count, width * stated)
        return BlockField(role, offset, width, stated, None, own, leaf.name, scalar)
    data_type = None if leaf.kind == "unsigned" else leaf.name
    return BlockField(role, offset, leaf.bits, count, data_type, own, "", scalar)


def _regions(level: Level, size: int | None) -> tuple[BlockLayout, bool, int]:
    """The layout of sequential regions: one array of fields for each, all of as many blocks."""
    counts: set[int] = set()
    for name, type_ in level.payload.items():
        if not isinstance(type_, Array) or isinstance(type_.count, Dim):
            raise level.unknown(f"{name} is no region of blocks")
        counts.add(type_.count)
        level.payload[name] = type_.element
    described = level.has("field_roles") and "field_roles" not in level.read.kept
    fields, end = _fields(level)
    if len(counts) != 1 or end % 8:
        raise level.differs("blocks", "regions of one number of blocks", 1, sorted(counts))
    apart = tuple(
        BlockField(
            item.role, 0, item.bit_width, item.count, item.data_type, item.name, item.carrier, item.scalar
        )
        for item in fields
    )
    return BlockLayout(size or _implied_size(level, fields), end // 8, apart), described, counts.pop()
