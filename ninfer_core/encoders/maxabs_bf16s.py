"""The row encoder MAXABS_BF16S_RECIP_E4M3FN_RNE_V1 as an oracle: E4M3FN codes and one BF16 multiplier a row.

Integers and rationals only, as in `maxabs_f16`. The order of arithmetic, every rounding to nearest, ties to even:

    scale = BF16(FP32(amax / 448))           0x0001 where that is zero and the row is not
    inverse = FP32(1 / scale)
    code = E4M3FN(clamp(FP32(x * inverse), -448, 448))

A row of zeros of either sign has scale +0 and codes 0x00. The reciprocal of a scale of at most 2**-128 is infinite and
no value can be normalised with it, so such a row is refused; the scale 0x0001 is one of them, and the rule that puts
it in never leads to a result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ninfer_core.encoders.maxabs_f16 import SourceNotFinite, to_binary32
from ninfer_core.errors import NinferError
from ninfer_core.words import (
    BFLOAT16,
    BINARY32,
    E4M3FN,
    FloatFormat,
    finite_value,
    is_finite,
    round_to,
    sign_of,
)

LARGEST_CODE = Fraction(448)
LARGEST_REFUSED_SCALE = 0x0020  # 2**-128, whose reciprocal is beyond binary32
SMALLEST_SCALE = 0x0001


class ScaleUnderflow(NinferError):
    """A row that is not zero and whose scale has no finite reciprocal; `raw_scale_word` is its binary32 word."""

    code = "scale_underflow"

    def __init__(self, raw_scale_word: int, row: int = 0) -> None:
        super().__init__(
            f"row {row}: scale {raw_scale_word:#010x} is at most 2**-128 in BF16, its reciprocal is not finite"
        )
        self.raw_scale_word = raw_scale_word
        self.row = row


@dataclass(frozen=True, slots=True)
class RowResult:
    """One encoded row: E4M3FN code words, the BF16 scale word, and the lanes beyond 448 before the clamp."""

    codes: tuple[int, ...]
    scale: int
    clamped: int


def raw_scale(amax_word: int) -> int:
    """round_f32(amax / 448): the binary32 word that is rounded to the scale."""
    return round_to(BINARY32, finite_value(BINARY32, amax_word) / LARGEST_CODE)


def scale_of(amax_word: int) -> int:
    """The BF16 scale word of a row whose largest magnitude is the binary32 word `amax_word`; 0 for a zero row.

    Raises: ScaleUnderflow.
    """
    if amax_word == 0:
        return 0
    raw = raw_scale(amax_word)
    scale = round_to(BFLOAT16, finite_value(BINARY32, raw)) or SMALLEST_SCALE
    if scale <= LARGEST_REFUSED_SCALE:
        raise ScaleUnderflow(raw)
    return scale


def encode_row(words32: Sequence[int]) -> RowResult:
    """Encode a row given as binary32 words. Raises: SourceNotFinite, ScaleUnderflow."""
    for lane, word in enumerate(words32):
        if not is_finite(BINARY32, word):
            raise SourceNotFinite(lane, word)
    scale = scale_of(max(word & 0x7FFFFFFF for word in words32))
    if scale == 0:
        return RowResult((0,) * len(words32), 0, 0)
    # Reciprocal first, rounded: dividing by the scale picks other codes at ties.
    inverse = finite_value(BINARY32, round_to(BINARY32, 1 / finite_value(BFLOAT16, scale)))
    codes, clamped = [], 0
    for word in words32:
        exact = abs(finite_value(BINARY32, word)) * inverse
        normalized = finite_value(BINARY32, round_to(BINARY32, exact))
        clamped += normalized > LARGEST_CODE
        codes.append(round_to(E4M3FN, min(normalized, LARGEST_CODE), sign_of(BINARY32, word)))
    return RowResult(tuple(codes), scale, clamped)


def encode_rows(source_words: Sequence[Sequence[int]], source: FloatFormat) -> list[RowResult]:
    """Encode a matrix [N, K] of source words.

    Raises: SourceNotFinite, ScaleUnderflow, both for the first row that cannot be encoded.
    """
    result = []
    for row, words in enumerate(source_words):
        lanes = []
        for lane, word in enumerate(words):
            narrowed = to_binary32(source, word)
            if narrowed is None:
                raise SourceNotFinite(lane, word, row)
            lanes.append(narrowed)
        try:
            result.append(encode_row(lanes))
        except ScaleUnderflow as error:
            raise ScaleUnderflow(error.raw_scale_word, row) from None
    return result
