"""Descriptive profiles: the nine kinds of quantization and rotations of the seed, as frozen data.

Nothing here is a message or a document of its own. A profile translates to a struct type and back; the checker judges
it, so that a malformed one has a place in these classes too. What the specialized declarations leave open and the rules
R1 to R17 decide (where a scale is stored, which leaf carries the codes) is a parameter as well.

A parameter that is None is not stated; where the seed gives 0 a meaning of its own, None means the same. Numbers are
those of binary32, since constants of a type are stored so.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from ninfer_core.schemes.structs.leaves import LEAVES


def single(value: float) -> float:
    """The binary32 number nearest to `value`, as a Python float; what is no number stays for the checker to see."""
    return singles((value,))[0]


def singles(values: tuple[float, ...]) -> tuple[float, ...]:
    """`single` for each; whole arrays at a time, tables are long."""
    if not isinstance(values, tuple) or any(type(value) not in (int, float) for value in values):
        return values
    try:
        with np.errstate(over="ignore"):
            return tuple(np.asarray(values, np.float64).astype(np.float32).tolist())
    except OverflowError:  # an integer beyond binary64
        return values


@dataclass(frozen=True, slots=True)
class ScaleFloat:
    """One constant scale (`scale_float`)."""

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", single(self.value))


@dataclass(frozen=True, slots=True)
class ScaleInt:
    """A constant shared exponent: a factor 2**exponent (`scale_int`, R15)."""

    exponent: int


@dataclass(frozen=True, slots=True)
class ScaleVector:
    """One constant scale for each index of the axis (R6)."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", singles(self.values))


@dataclass(frozen=True, slots=True)
class ScaleField:
    """A scale in the payload (R7): `scale`, one number of a floating-point type, or one for each index of the axis."""

    type: str


Scale = ScaleFloat | ScaleInt | ScaleVector | ScaleField


@dataclass(frozen=True, slots=True)
class Linear:
    """value = (code - zero_point) x scale. `leaf` is the type of the codes where the default is another (R4).

    By default codes are leaves of `storage_type` where `bits` is its width, else a low-bits-first stream in UINT8;
    UINT8 as the `leaf` of narrower codes asks for the stream.
    """

    storage_type: str
    bits: int
    symmetric: bool
    scale: Scale
    zero_point: int | tuple[int, ...] = 0
    axis: int = -1
    leaf: str | None = None

    def __post_init__(self) -> None:
        known = self.storage_type in LEAVES
        own = known and LEAVES[self.storage_type].bits == self.bits
        if self.leaf == (self.storage_type if own else "UINT8"):
            object.__setattr__(self, "leaf", None)  # the default, stated


@dataclass(frozen=True, slots=True)
class Codebook:
    """value = scale x sum over the codebooks of the entry that an index picks (R2, R8); `flat`: the table has one dimension."""

    codebook_data: tuple[float, ...]
    scale: Scale | None = None
    packed_count: int | None = None
    packed_bytes: int | None = None
    num_codebooks: int | None = None
    codebook_size: int | None = None
    vector_size: int | None = None
    index_bits: int | None = None
    flat: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "codebook_data", singles(self.codebook_data))

    @property
    def books(self) -> int:
        """How many codebooks are added."""
        return self.num_codebooks or 1

    @property
    def vector(self) -> int:
        """How many values an entry has."""
        return self.vector_size or 1

    @property
    def entries(self) -> int:
        """How many entries a codebook has."""
        return self.codebook_size or len(self.codebook_data) // (self.books * self.vector)


Carrier = Literal["components", "native", "bytes"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A declaration of its own for `packed_count` values, repeated below `field`."""

    name: str
    field: str = "values"


@dataclass(frozen=True, slots=True)
class FloatingPoint:
    """Small floats by R9. `carrier` says what holds a value: named components, a `leaf` of that type, or a stream in UINT8.

    `repeated` states the widths and counts as constants beside components, where the layout says them already.
    `parameter` names a dimension parameter that takes the place of the count (bare packed array only).
    """

    sign_bits: int
    exponent_bits: int
    mantissa_bits: int
    exponent_bias: int
    has_inf: bool
    has_nan: bool
    split_storage: bool = False
    packed_count: int = 1
    packed_bytes: int = 1
    carrier: Carrier = "components"
    leaf: str | None = None
    scale: ScaleField | None = None
    repeated: bool = False
    unit: Unit | None = None
    bare: bool = False
    parameter: str | None = None

    @property
    def bits(self) -> int:
        """Width of a value."""
        return self.sign_bits + self.exponent_bits + self.mantissa_bits


@dataclass(frozen=True, slots=True)
class Sparse:
    """A base, and outliers at flat row-major indices that replace its values (R12).

    `prefixed` names the fields `outlier_indices` and `outlier_values` and states their type, as the SpQR example does.
    """

    base: "Quantization"
    outlier_data_type: str
    outlier_threshold: float
    outlier_ratio: float
    outliers: int
    prefixed: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "outlier_threshold", single(self.outlier_threshold))
        object.__setattr__(self, "outlier_ratio", single(self.outlier_ratio))


@dataclass(frozen=True, slots=True)
class Log:
    """value = sign x base ** (code + offset); the sign plane holds 1 for negative (R13)."""

    bits: int
    base: float
    offset: float
    has_sign: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", single(self.base))
        object.__setattr__(self, "offset", single(self.offset))


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
    """Codes whose meaning custom operators know; structure and size are known without them."""

    storage_type: str
    bits: int
    quantize_op: str
    dequantize_op: str
    block_layout: BlockLayout | None = None
    block_name: str = "FUNCTION_BLOCK_LAYOUT"
    described: bool = True


@dataclass(frozen=True, slots=True)
class Tiling:
    """Tiles of one or several axes (R10, R17); no axes: of the flattened tensor.

    `field` names the array of tiles. `stacked`: linear tiles that differ in scale and zero point alone share one array
    of codes. `shape_in_tile`: the tile's declaration states its shape, not the root.
    """

    tile_shape: tuple[int, ...]
    elem_quant: tuple["Quantization", ...]
    axes: tuple[int, ...] = ()
    perm: tuple[int, ...] = ()
    field: str = "tiles"
    stacked: bool = False
    shape_in_tile: bool = False

    def __post_init__(self) -> None:
        first = self.elem_quant[:1]
        if self.elem_quant == first * len(self.elem_quant) and not self.stacked:
            object.__setattr__(self, "elem_quant", first)  # one quantization, repeated


@dataclass(frozen=True, slots=True)
class Cast:
    """Values of another type."""

    storage_type: str


@dataclass(frozen=True, slots=True)
class Rotation:
    """A rotation beside a quantization (R11); a plain one holds its `matrix`, of one dim a diagonal."""

    matrix_type: Literal["HADAMARD", "PLAIN"]
    dims: tuple[int, ...]
    matrix: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", singles(self.matrix))


Kind = Linear | Codebook | FloatingPoint | Sparse | Log | Function | Tiling | Cast | StructuredBlock

NAMES: Final[dict[type, str]] = {
    Linear: "LINEAR",
    Codebook: "CODEBOOK",
    FloatingPoint: "FLOATING_POINT",
    Sparse: "SPARSE_QUANTIZED",
    Log: "LOG_UNIFORM",
    Function: "FUNCTION_QUANTIZED",
    Tiling: "TILED",
    Cast: "CAST",
    StructuredBlock: "STRUCTURED_BLOCK",
}


@dataclass(frozen=True, slots=True)
class Quantization:
    """How a tensor is quantized. `data_type` is the type it had; `name` is that of the declaration.

    `unstated` names parameters that the seed's own structure leaves out: they go to the metadata, not to constants.
    """

    kind: Kind
    name: str = ""
    data_type: str | None = None
    doc: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    pre_rotation: Rotation | None = None
    post_rotation: Rotation | None = None
    unstated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or NAMES[type(self.kind)])
        object.__setattr__(self, "unstated", tuple(sorted(set(self.unstated))))
