"""The canonical encoder MAXABS_F16_RECIP_RNE_V1 as an oracle (tensor-formats section 7).

Integers and rationals only: no machine float takes part, so nothing here depends on a processor, a compiler
or a floating-point mode. It is slow on purpose; `kernels` has the fast twin, held equal by tests.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ninfer_core.errors import NinferError
from ninfer_core.formats import GroupedFormat
from ninfer_core.words import (
    BINARY16,
    BINARY32,
    FloatFormat,
    finite_value,
    is_finite,
    round_to,
    sign_of,
    value,
)

SMALLEST_SCALE = 0x0001  # 2**-24, put in for a scale that rounded to zero over a nonzero group


class SourceNotFinite(NinferError):
    """A source value that is NaN, infinite, or beyond binary32; `word` is the source word."""

    code = "source_not_finite"

    def __init__(self, lane: int, word: int, row: int = 0, group: int = 0) -> None:
        super().__init__(
            f"row {row}, group {group}, lane {lane}: source word {word:#x} is not finite in binary32"
        )
        self.lane = lane
        self.word = word
        self.row = row
        self.group = group


class ScaleOverflow(NinferError):
    """A group whose scale is beyond binary16; `raw_scale_word` is the binary32 word that did not fit."""

    code = "scale_overflow"

    def __init__(self, raw_scale_word: int, row: int = 0, group: int = 0) -> None:
        super().__init__(f"row {row}, group {group}: scale {raw_scale_word:#010x} is beyond binary16")
        self.raw_scale_word = raw_scale_word
        self.row = row
        self.group = group


@dataclass(frozen=True, slots=True)
class GroupResult:
    """One encoded group: signed codes, the binary16 scale word, and what was bent on the way."""

    codes: tuple[int, ...]
    scale: int
    rescued: bool
    clamped: int  # lanes changed by the clamp


def raw_scale(fmt: GroupedFormat, amax_word: int) -> int:
    """round_f32(amax / qmax): the binary32 word that is rounded to the scale."""
    return round_to(BINARY32, finite_value(BINARY32, amax_word) / fmt.qmax)


def encode_group(fmt: GroupedFormat, words32: Sequence[int]) -> GroupResult:
    """Encode the logical lanes of one group, given as binary32 words.

    Raises: SourceNotFinite, ScaleOverflow.
    """
    for lane, word in enumerate(words32):
        if not is_finite(BINARY32, word):
            raise SourceNotFinite(lane, word)
    amax = max(word & 0x7FFFFFFF for word in words32)  # magnitudes order like their words
    if amax == 0:
        return GroupResult((0,) * len(words32), 0, False, 0)
    raw = raw_scale(fmt, amax)
    scale = round_to(BINARY16, finite_value(BINARY32, raw))
    rescued = scale == 0
    if rescued:
        scale = SMALLEST_SCALE
    if not is_finite(BINARY16, scale):
        raise ScaleOverflow(raw)
    # Reciprocal first, rounded: dividing by the scale picks other codes at ties.
    inverse = finite_value(BINARY32, round_to(BINARY32, 1 / finite_value(BINARY16, scale)))
    rounded = []
    for word in words32:
        exact = abs(finite_value(BINARY32, word)) * inverse
        normalized = finite_value(BINARY32, round_to(BINARY32, exact, sign_of(BINARY32, word)))
        rounded.append(round(normalized))  # Fraction rounds half to even
    codes = tuple(min(max(code, fmt.qmin), fmt.qmax) for code in rounded)
    clamped = sum(a != b for a, b in zip(codes, rounded, strict=True))
    return GroupResult(codes, scale, rescued, clamped)


def to_binary32(source: FloatFormat, word: int) -> int | None:
    """The source word rounded to binary32, or None when it is not finite there."""
    exact = value(source, word)
    if exact is None:
        return None
    rounded = round_to(BINARY32, abs(exact), sign_of(source, word))
    return rounded if is_finite(BINARY32, rounded) else None


def encode_rows(
    fmt: GroupedFormat, source_words: Sequence[Sequence[int]], source: FloatFormat
) -> list[list[GroupResult]]:
    """Encode a matrix [N, K] of source words; the result holds one list of logical groups per row.

    Raises: SourceNotFinite, ScaleOverflow, both for the first group in row-major order that cannot be encoded.
    """
    result = []
    for row, words in enumerate(source_words):
        groups = []
        for group, start in enumerate(range(0, len(words), fmt.group)):
            lanes = []
            for lane, word in enumerate(words[start : start + fmt.group]):
                narrowed = to_binary32(source, word)
                if narrowed is None:
                    raise SourceNotFinite(lane, word, row, group)
                lanes.append(narrowed)
            try:
                groups.append(encode_group(fmt, lanes))
            except ScaleOverflow as error:
                raise ScaleOverflow(error.raw_scale_word, row, group) from None
        result.append(groups)
    return result
