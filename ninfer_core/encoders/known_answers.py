"""What an encoder profile answers to a fixed set of groups: its meaning as data, to tell whether it has changed.

The groups are written as binary32 words. They are few and reach every branch of the arithmetic; the tests of the
encoder itself use many more.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ninfer_core.encoders import MAXABS_BF16S_RECIP_E4M3FN_RNE_V1, MAXABS_F16_RECIP_RNE_V1, EncoderProfile
from ninfer_core.encoders.maxabs_bf16s import ScaleUnderflow, encode_row
from ninfer_core.encoders.maxabs_f16 import ScaleOverflow, SourceNotFinite, encode_group
from ninfer_core.formats import GroupedFormat, RowFormat
from ninfer_core.words import BINARY32, E4M3FN, finite_value, round_to, sign_of

_ONE = 0x3F80_0000
_SIGN = 0x8000_0000
_LARGEST = 0x7F7F_FFFF
_INFINITY = 0x7F80_0000
_TOP = 0x43E0_0000  # 448
_MULTIPLIER, _INCREMENT, _SEED = 1_664_525, 1_013_904_223, 20_261_130  # Knuth's "quick and dirty" generator


def known_answers(profile: EncoderProfile) -> list[dict[str, Any]]:
    """One JSON object for each format and group: the words, and the codes and scale or why there are none."""
    answer = _ANSWERS[profile.name]
    answers = []
    for fmt in profile.formats:
        for words in rows() if isinstance(fmt, RowFormat) else groups(fmt):
            asked: dict[str, Any] = {"format": fmt.name, "words": [f"{word:08x}" for word in words]}
            try:
                asked |= answer(fmt, words)
            except (ScaleOverflow, ScaleUnderflow, SourceNotFinite) as error:
                asked["refused"] = error.code
            answers.append(asked)
    return answers


def _group(fmt: GroupedFormat | RowFormat, words: Sequence[int]) -> dict[str, Any]:
    if not isinstance(fmt, GroupedFormat):
        raise TypeError(f"{fmt.name} has no groups")
    result = encode_group(fmt, words)
    return {
        "codes": list(result.codes),
        "scale": f"{result.scale:04x}",
        "rescued": result.rescued,
        "clamped": result.clamped,
    }


def _row(fmt: GroupedFormat | RowFormat, words: Sequence[int]) -> dict[str, Any]:
    result = encode_row(words)
    codes = [f"{code:02x}" for code in result.codes]
    return {"codes": codes, "scale": f"{result.scale:04x}", "clamped": result.clamped}


_ANSWERS: dict[str, Callable[[GroupedFormat | RowFormat, Sequence[int]], dict[str, Any]]] = {
    MAXABS_F16_RECIP_RNE_V1.name: _group,
    MAXABS_BF16S_RECIP_E4M3FN_RNE_V1.name: _row,
}


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


def rows() -> Iterator[list[int]]:
    """The rows of the FP8 encoder, as binary32 words."""
    yield [0, _SIGN, 0]  # no scale at all: signs of zeros are lost
    yield [_ONE]
    # The scale is 1 and its reciprocal exact: every code, then every tie between two neighbours.
    yield [_word_of_code(code) for code in range(256) if code & 0x7F != 0x7F]
    yield [_TOP, *(_between(code) for code in range(0x7E))]
    yield [_SIGN | _TOP, 0x3A80_0000, 0x3A80_0001, _SIGN | 0x3A7F_FFFF]  # half of the smallest code
    # Half a unit of BF16 above 448 is 0x7000 steps: below and on it the scale is rounded down and codes are clamped.
    for steps in (0x6FFF, 0x7000, 0x7008):
        yield [_TOP + steps, _SIGN | _TOP + 0x1000, _half(3)]
    yield [0x0000_0001, _SIGN | 0x0000_0001]  # the scale rounds to zero; 0x0001 stands in and is refused
    yield [0x0380_0000, _SIGN]  # a subnormal scale without a finite reciprocal
    yield [
        0x041E_0000,
        0x0000_0001,
        0x007F_FFFF,
        _SIGN | 0x0080_0000,
    ]  # subnormal lanes under a subnormal scale
    yield [_LARGEST, _SIGN | _LARGEST, 0x7F00_0000, _ONE]
    yield [_ONE, _INFINITY]
    yield [_ONE, _INFINITY | 1]
    for exponents in (1, 8, 24):
        yield list(_drawn(96, exponents))


def _word_of_code(code: int) -> int:
    """The binary32 word of a finite E4M3FN word."""
    return round_to(BINARY32, abs(finite_value(E4M3FN, code)), sign_of(E4M3FN, code))


def _between(code: int) -> int:
    """The binary32 word halfway between a positive E4M3FN word and the next."""
    return round_to(BINARY32, (finite_value(E4M3FN, code) + finite_value(E4M3FN, code + 1)) / 2)


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
