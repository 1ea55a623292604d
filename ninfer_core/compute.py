"""Compute profiles: what may be observed of a computation on stored weights (tensor-formats section 2).

A profile owns public input and output types, casts that are part of the meaning, what repetition promises, and the
criterion of a right answer. How an implementation gets there is its own affair. Registered is what this code honours.
"""

from dataclasses import dataclass
from typing import Final, Literal

from ninfer_core.formats import QUANTIZED, BlockFormat, GroupedFormat, RowFormat
from ninfer_core.registry import Closed

Determinism = Literal["bitwise"]  # the same words on every machine, for any number of threads and any blocks


@dataclass(frozen=True, slots=True)
class Criterion:
    """How an answer is judged against the oracle of its profile."""

    name: str
    meaning: str


WORDS_EQUAL: Final = Criterion("WORDS_EQUAL", "every output word equals the oracle's, bit for bit")


@dataclass(frozen=True, slots=True)
class ComputeProfile:
    """One operation as its caller sees it; any change that can alter an output word is a new version.

    `casts` are the roundings that belong to the meaning, in their order.
    """

    name: str
    version: int
    inputs: tuple[GroupedFormat | BlockFormat | RowFormat, ...]
    output: str
    casts: tuple[str, ...]
    determinism: Determinism
    criterion: Criterion
    specification: str


_PRODUCT: Final = "one rounding of the exact product (NVFP4: of the exact quotient) to binary32, nearest even"

RECONSTRUCT_FP32_V1: Final = ComputeProfile(
    "RECONSTRUCT_FP32_V1",
    1,
    QUANTIZED,
    "FP32",
    (_PRODUCT,),
    "bitwise",
    WORDS_EQUAL,
    "The represented value of every logical weight as a binary32 word. A zero has the sign of the product of the signs; "
    "a magnitude beyond binary32 becomes infinity. Subnormal words are kept whatever the processor's mode.",
)
RECONSTRUCT_BF16_V1: Final = ComputeProfile(
    "RECONSTRUCT_BF16_V1",
    1,
    QUANTIZED,
    "BF16",
    (_PRODUCT, "one rounding of that binary32 word to BF16, nearest even"),
    "bitwise",
    WORDS_EQUAL,
    "The binary32 word of RECONSTRUCT_FP32_V1, rounded a second time to a BF16 word. A scale never passes through BF16.",
)

COMPUTE_PROFILES: Final[Closed[ComputeProfile]] = Closed(
    "compute profile", RECONSTRUCT_FP32_V1, RECONSTRUCT_BF16_V1
)
