"""What an encoder profile answers to a fixed set of groups: its meaning as data, to tell whether it has changed.

The groups are written as binary32 words. They are few and reach every branch of the arithmetic; the tests of the
encoder itself use many more.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ninfer_core.encoders import MAXABS_F16_RECIP_RNE_V1, EncoderProfile
from ninfer_core.encoders.maxabs_f16 import GroupResult, ScaleOverflow, SourceNotFinite, encode_group
from ninfer_core.formats import GroupedFormat

_ONE = 0x3F80_0000
_SIGN = 0x8000_0000
_LARGEST = 0x7F7F_FFFF
_INFINITY = 0x7F80_0000
_MULTIPLIER, _INCREMENT, _SEED = 1_664_525, 1_013_904_223, 20_261_130  # Knuth's "quick and dirty" generator

_ORACLES: dict[str, Callable[[GroupedFormat, Sequence[int]], GroupResult]] = {
    MAXABS_F16_RECIP_RNE_V1.name: encode_group,
}


def known_answers(profile: EncoderProfile) -> list[dict[str, Any]]:
    """One JSON object for each format and group: the words, and the codes and scale or why there are none."""
    oracle = _ORACLES[profile.name]
    answers = []
    for fmt in profile.formats:
        for words in groups(fmt):
            answer: dict[str, Any] = {"format": fmt.name, "words": [f"{word:08x}" for word in words]}
            try:
                result = oracle(fmt, words)
            except (ScaleOverflow, SourceNotFinite) as error:
                answer["refused"] = error.code
            else:
                answer |= {
                    "codes": list(result.codes),
                    "scale": f"{result.scale:04x}",
                    "rescued": result.rescued,
                    "clamped": result.clamped,
                }
            answers.append(answer)
    return answers


def groups(fmt: GroupedFormat) -> Iterator[list[int]]:
    """The groups, as binary32 words."""
    yield [0, _SIGN, 0]  # no scale at all
    yield [_ONE]  # one lane: a tail
    # Multiples of a half around zero, the largest being qmax: every tie, both signs.
    yield [_half(n) for n in range(-2 * fmt.qmax, 2 * fmt.qmax + 1)][-fmt.group :]
    yield [_SIGN | _half(2 * fmt.qmax), _half(2 * fmt.qmax - 1), _SIGN | _half(1)]
    yield [0x0000_0001, _SIGN | 0x007F_FFFF, 0x0080_0000]  # subnormal words; the scale is rescued
    # A quarter more than qmax times the smallest scale: the scale is rounded down to it, and the codes are clamped.
    beyond = _half(2 * fmt.qmax + fmt.qmax // 2) - (24 << 23)
    yield [beyond, _SIGN | beyond, beyond - (1 << 23)]
    yield [0x3380_0000, 0xB300_0001, 0x3200_0000]  # about 2**-24, the smallest scale
    yield [0x477F_E000, 0xC700_0000, 0x4000_0001]  # about 65504, the largest scale
    yield [_LARGEST, 0]  # its scale is beyond binary16
    yield [_ONE, _INFINITY]
    for exponents in (1, 8, 24):
        yield list(_drawn(fmt.group, exponents))


def _half(n: int) -> int:
    """The binary32 word of n / 2, for |n| below 2**24."""
    if n == 0:
        return 0
    magnitude = abs(n)
    top = magnitude.bit_length() - 1
    return (_SIGN if n < 0 else 0) | (top - 1 + 127) << 23 | (magnitude << (23 - top)) & 0x7F_FFFF


def _drawn(count: int, exponents: int) -> Iterator[int]:
    """Words of both signs, with any fraction and one of so many exponents below 2**0."""
    state = _SEED + exponents
    for _ in range(count):
        state = (state * _MULTIPLIER + _INCREMENT) % 2**32
        yield (state & _SIGN) | (126 - (state >> 23) % exponents) << 23 | (state & 0x7F_FFFF)
