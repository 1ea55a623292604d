"""Profiles whose values stand alone: linear, codebook, small floats, logarithms; and scales, in binary32 as types store them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ninfer_core.schemes.structs.leaves import LEAVES


def single(value: float) -> float:
    """The binary32 number nearest to `value`, as a Python float; what is no number stays for the checker to see."""
    return singles((value,))[0]


def singles(values: tuple[float, ...]) -> tuple[float, ...]:
    """`single` for each; whole arrays at a time, tables are long."""
    if not isinstance(values, tuple) or not all(map(_is_number, values)):
        return values
    try:
        with np.errstate(over="ignore"):
            return tuple(np.asarray(values, np.float64).astype(np.float32).tolist())
    except OverflowError:  # an integer beyond binary64
        return values


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


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


@dataclass(frozen=True, slots=True)
class ZeroField:
    """A zero point in the payload: `zero_point`, one number of a type, or one for each index of the axis."""

    type: str


ZeroPoint = int | tuple[int, ...] | ZeroField
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
    zero_point: ZeroPoint = 0
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
class Log:
    """value = sign x base ** (code + offset); the sign plane holds 1 for negative (R13)."""

    bits: int
    base: float
    offset: float
    has_sign: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", single(self.base))
        object.__setattr__(self, "offset", single(self.offset))
