"""Profiles of blocks: fields with roles at bit offsets, and custom functions over them."""

from dataclasses import dataclass
from typing import Final, Literal

from ninfer_core.schemes.profiles.model_values import singles

Role = Literal["VALUES", "SIGN", "SCALE", "ZERO_POINT", "BIAS", "EXPONENT", "CODE", "MASK"]
ROLES: Final[tuple[Role, ...]] = (
    "VALUES", "SIGN", "SCALE", "ZERO_POINT", "BIAS", "EXPONENT", "CODE", "MASK",
)  # fmt: skip  # a role's number is its place


@dataclass(frozen=True, slots=True)
class BlockField:
    """Elements of one width in a block; `bit_offset` counts from the block, or in its own record where regions are sequential.

    Without a `data_type` they are unsigned. A width that no leaf has lies in a `carrier`, low bits first. `scalar`: one
    element that is no array.
    """

    role: Role
    bit_offset: int
    bit_width: int
    count: int
    data_type: str | None = None
    name: str = ""
    carrier: str = ""
    scalar: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or str(self.role).lower())
        if self.data_type == f"UINT{self.bit_width}":  # raw unsigned bits are that type
            object.__setattr__(self, "data_type", None)
        own = self.data_type is not None or self.bit_width in LEAF_WIDTHS
        object.__setattr__(self, "carrier", "" if own and self.carrier == "" else self.carrier or "UINT8")

    @property
    def bits(self) -> int:
        """The width of the whole field."""
        return self.bit_width * self.count


LEAF_WIDTHS: Final = (2, 4, 8, 16, 32, 64)  # of unsigned leaves


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """What one block of `block_size` values is stored in."""

    block_size: int
    bytes_per_block: int
    fields: tuple[BlockField, ...]

    def of(self, role: str) -> BlockField | None:
        """The field of a role, if there is one."""
        return next((field for field in self.fields if field.role == role), None)


@dataclass(frozen=True, slots=True)
class FieldWeight:
    """A term of an index: a field's element times a number."""

    field: Role
    multiplier: int


@dataclass(frozen=True, slots=True)
class Scatter:
    """Where values go: entry g, lane p of a group of `group_size` is at lane g + `stride` x p."""

    group_size: int
    vector_size: int
    stride: int


Order = Literal["INTERLEAVED", "SEQUENTIAL"]
ORDERS: Final[tuple[Order, ...]] = ("INTERLEAVED", "SEQUENTIAL")


@dataclass(frozen=True, slots=True)
class StructuredBlock:
    """value = (v - zero_point) x scale + bias in each block; v is a stored value, or comes from a codebook by an index.

    `described`: roles, odd widths and the block size stand as constants in the block, as the STQ1_0 example has them;
    otherwise the size stands at the root. `bare`: the root is the array of blocks itself.
    """

    layout: BlockLayout
    codebook_data: tuple[float, ...] = ()
    codebook_vector_size: int = 0
    index_formula: tuple[FieldWeight, ...] = ()
    scatter: Scatter | None = None
    storage_order: Order | None = None
    axis: int | None = None
    block_name: str = "STRUCTURED_BLOCK_LAYOUT"
    described: bool = False
    bare: bool = False
    flat: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "codebook_data", singles(self.codebook_data))


@dataclass(frozen=True, slots=True)
class Function:
    """Codes whose meaning custom operators know; structure and size are known without them.

    `decoder` and `encoder` are serialized functions of standard operators, where the operators can be said so.
    """

    storage_type: str
    bits: int
    quantize_op: str
    dequantize_op: str
    block_layout: BlockLayout | None = None
    block_name: str = "FUNCTION_BLOCK_LAYOUT"
    described: bool = True
    decoder: bytes | None = None
    encoder: bytes | None = None
