"""Numbers of profiles: what is a count, and which parameters have to be integers."""

import math
from dataclasses import fields
from typing import Any, Final

from ninfer_core.schemes.profiles.faults import Faults
from ninfer_core.schemes.profiles.model import (
    Codebook,
    FloatingPoint,
    Function,
    Kind,
    Linear,
    Log,
    Sparse,
    StructuredBlock,
    Tiling,
    ZeroField,
)
from ninfer_core.schemes.structs.leaves import LEAVES

MAX_COUNT: Final = 1 << 31  # parameters are INT32 constants

_INTEGERS: Final[dict[type, tuple[str, ...]]] = {
    Linear: ("bits", "axis", "zero_point"),
    Codebook: ("packed_count", "packed_bytes", "num_codebooks", "codebook_size", "vector_size", "index_bits"),
    FloatingPoint: (
        "sign_bits", "exponent_bits", "mantissa_bits", "exponent_bias", "packed_count", "packed_bytes",
    ),
    Sparse: ("outliers",),
    Log: ("bits",),
    Function: ("bits",),
    Tiling: ("tile_shape", "axes", "perm"),
    StructuredBlock: ("codebook_vector_size", "axis"),
}  # fmt: skip
_SIGNED: Final = ("axis", "zero_point", "exponent_bias")


def is_integer(value: object) -> bool:
    """An integer, and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def whole(value: object) -> bool:
    """A count: an integer of 0 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def finite(value: object) -> bool:
    """A finite number that binary32 holds."""
    return isinstance(value, float) and math.isfinite(value)


def is_float(name: object) -> bool:
    """The name of a floating-point scalar."""
    return isinstance(name, str) and name in LEAVES and LEAVES[name].kind == "float"


def concrete(kind: Kind, faults: Faults) -> bool:
    """Whether every integer parameter is one; a name that stands for a number is a fault (section 7)."""
    known = {field.name for field in fields(kind)}
    good = True
    for name in _INTEGERS.get(type(kind), ()):
        if name in known and not _legal(name, getattr(kind, name)):
            expected = "an integer" if name in _SIGNED else "a count"
            faults.add("count_not_concrete", name, "no concrete number", expected, getattr(kind, name))
            good = False
    return good


def _legal(name: str, value: Any) -> bool:
    if value is None or isinstance(value, ZeroField):
        return True
    items = value if isinstance(value, tuple) else (value,)
    right = is_integer if name in _SIGNED else whole
    wide = name in ("tile_shape", "zero_point", "outliers")
    return all(right(item) and (wide or abs(item) < MAX_COUNT) for item in items)
