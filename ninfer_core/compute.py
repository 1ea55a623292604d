"""Compute profiles: what may be observed of a computation on stored weights (tensor-formats section 2).

A profile owns public input and output types, casts that are part of the meaning, what repetition promises, and the
criterion of a right answer. How an implementation gets there is its own affair. Registered is what this code honours.
"""

from dataclasses import dataclass
from typing import Final, Literal

from ninfer_core.formats import BF16, FORMATS, FP32, GROUPED, QUANTIZED, NumericFormat, RowFormat
from ninfer_core.locked import locked_digest
from ninfer_core.registry import Closed

Operation = Literal["encode", "reconstruct", "check", "statistics", "parity", "matvec"]
Determinism = Literal[
    "bitwise",  # the same words on every machine, for any number of threads and any blocks
    "within-criterion",  # other words are right as well, as long as they meet the criterion
]


@dataclass(frozen=True, slots=True)
class Criterion:
    """How an answer is judged against the oracle of its profile."""

    name: str
    meaning: str


WORDS_EQUAL: Final = Criterion("WORDS_EQUAL", "every output word equals the oracle's, bit for bit")
NUMBERS_EQUAL: Final = Criterion(
    "NUMBERS_EQUAL", "every count, and every word of every sum, equals the oracle's, bit for bit"
)
FP32_SUM_TO_BF16: Final = Criterion(
    "FP32_SUM_TO_BF16",
    "every output word is nearest to some number within g * S + 2**-149 * (m + 1 + A) of the exact sum, where S is the "
    "sum of |w * a|, A the sum of |a|, m how many a are not zero, n = m + 4, u = 2**-24 and g = n * u / (1 - n * u)",
)


@dataclass(frozen=True, slots=True)
class ComputeProfile:
    """One operation as its caller sees it; any change that can alter an output word is a new version.

    `formats` are those of the stored weights, `inputs` what goes in beside the words that describe a shape. `casts`
    are the roundings that belong to the meaning, in their order.
    """

    name: str
    version: int
    operation: Operation
    formats: tuple[NumericFormat, ...]
    inputs: tuple[str, ...]
    output: str
    casts: tuple[str, ...]
    determinism: Determinism
    criterion: Criterion
    specification: str

    @property
    def digest(self) -> str:
        """The semantic digest, as locked. Raises: LookupError, for a profile that is not registered."""
        digest = locked_digest("compute profile", self.name)
        if digest is None:
            raise LookupError(f"{self.name} is not in the lock of the registries")
        return digest


_PRODUCT: Final = "one rounding of the exact product (NVFP4: of the exact quotient) to binary32, nearest even"
_STORED: Final = "stored words of the format"

RECONSTRUCT_FP32_V1: Final = ComputeProfile(
    "RECONSTRUCT_FP32_V1",
    1,
    "reconstruct",
    QUANTIZED,
    (_STORED,),
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
    "reconstruct",
    QUANTIZED,
    (_STORED,),
    "BF16",
    (_PRODUCT, "one rounding of that binary32 word to BF16, nearest even"),
    "bitwise",
    WORDS_EQUAL,
    "The binary32 word of RECONSTRUCT_FP32_V1, rounded a second time to a BF16 word. A scale never passes through BF16.",
)
ENCODE_GROUPED_V1: Final = ComputeProfile(
    "ENCODE_GROUPED_V1",
    1,
    "encode",
    GROUPED,
    ("source words of BF16, F16, F32 or F64",),
    "codes and scale words of the format",
    (
        "one rounding of every source word to binary32, nearest even",
        "those of the encoder profile MAXABS_F16_RECIP_RNE_V1",
    ),
    "bitwise",
    WORDS_EQUAL,
    "Codes and scales as MAXABS_F16_RECIP_RNE_V1 defines them, packed as row-split-k128-v1 stores them, physical lanes "
    "and groups zero. With them come the groups whose scale was rescued from zero and the lanes that the clamp changed. "
    "What that profile refuses is refused: the first such group, in row-major order, is named with its lane, and no "
    "words are given.",
)
ENCODE_ROWS_V1: Final = ComputeProfile(
    "ENCODE_ROWS_V1",
    1,
    "encode",
    tuple(fmt for fmt in QUANTIZED if isinstance(fmt, RowFormat)),
    ("source words of BF16, F16 or F32",),
    "codes and multiplier words of the format",
    (
        "the exact widening of every source word to binary32",
        "those of the encoder profile MAXABS_BF16S_RECIP_E4M3FN_RNE_V1",
    ),
    "bitwise",
    WORDS_EQUAL,
    "Codes and multipliers as MAXABS_BF16S_RECIP_E4M3FN_RNE_V1 defines them. A row may be given in parts, once its "
    "largest magnitude is known. With them come the lanes that the clamp changed. What that profile refuses is refused: "
    "the first such row is named, and no words are given.",
)
CHECK_WORDS_V1: Final = ComputeProfile(
    "CHECK_WORDS_V1",
    1,
    "check",
    QUANTIZED,
    (_STORED,),
    "a mask",
    (),
    "bitwise",
    NUMBERS_EQUAL,
    "What is wrong with stored words, as bits, 0 when nothing is. 1: a scale word of a logical group or row that the "
    "format does not allow. 2: a zero scale over a logical code that does not stand for zero. 4: a logical code that the "
    "format does not allow. 8: a physical lane or a wholly physical group that is not zero.",
)
STATISTICS_V1: Final = ComputeProfile(
    "STATISTICS_V1",
    1,
    "statistics",
    tuple(FORMATS),
    (_STORED,),
    "counts and extreme words",
    (),
    "bitwise",
    NUMBERS_EQUAL,
    "Counts over logical lanes and groups alone. Quantized formats: how often each code occurs, groups, groups under a "
    "zero scale, groups whose codes all stand for zero, the smallest and the largest scale word that is not zero. "
    "Direct formats: words, zeros of either sign, NaNs, infinities, the smallest and the largest finite word by value, "
    "zero being +0.",
)
PARITY_SUMS_V1: Final = ComputeProfile(
    "PARITY_SUMS_V1",
    1,
    "parity",
    (*GROUPED, BF16, FP32),
    (_STORED, "source words of BF16, F16, F32 or F64"),
    "binary64 sums",
    (
        "one rounding of every source word to binary32, nearest even",
        "every difference, square and sum in binary64, nearest even, never fused",
    ),
    "bitwise",
    NUMBERS_EQUAL,
    "Over pairs of a finite source x and the stored value y: the sums of (x - y)**2, x**2 and y**2, and the largest "
    "|x - y|, in an order that the shape alone fixes. Each row is cut into tiles of at most 32 lines of 128 lanes; lanes "
    "beyond the row's end are zeros, and rows of whole lines are one row, as all words of a direct format are. In a tile, "
    "line after line adds its four quarters, as (first + second) + (third + fourth), to 32 accumulators. For grouped "
    "formats y**2 is formed by groups: the sum of the squared codes, an integer, times the squared scale, one of 128 "
    "places of the tile. Accumulators, and places, are summed by adding the upper half to the lower until one is left; "
    "tiles are added in order to 0.",
)
MATVEC_BF16_FP32ACC_V1: Final = ComputeProfile(
    "MATVEC_BF16_FP32ACC_V1",
    1,
    "matvec",
    QUANTIZED,
    (_STORED, "an activation [K] of BF16 words"),
    "BF16",
    ("one rounding of every sum to BF16, nearest even",),
    "within-criterion",
    FP32_SUM_TO_BF16,
    "y[n] = sum over k of w[n, k] * a[k]: w is the represented value of a weight, reconstructed exactly, a the public "
    "activation, every a[k] a number, the sum of |w * a| below 2**127. Accumulated in binary32 at least; how products and "
    "sums are ordered, fused and staged is free. No subnormal is flushed, of a scale, an activation or a result, and no "
    "scale passes through BF16.",
)

COMPUTE_PROFILES: Final[Closed[ComputeProfile]] = Closed(
    "compute profile",
    RECONSTRUCT_FP32_V1,
    RECONSTRUCT_BF16_V1,
    ENCODE_GROUPED_V1,
    ENCODE_ROWS_V1,
    CHECK_WORDS_V1,
    STATISTICS_V1,
    PARITY_SUMS_V1,
    MATVEC_BF16_FP32ACC_V1,
)
