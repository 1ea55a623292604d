"""Sources that an encoder has to refuse, and where: what is refused follows from how each is made."""

from collections.abc import Iterator

import numpy as np

from ninfer_core.encoders import maxabs_bf16s, maxabs_f16
from ninfer_core.formats import GroupedFormat, NumericFormat
from ninfer_core.kernels.registry import Kernel
from ninfer_core.kernels.values import SOURCE_DTYPES, EncodeFault
from ninfer_core.selfcheck.drawn import WORDS, Words, largest_word, widened
from ninfer_core.selfcheck.protocol import Refusal

_Refused = tuple[str, Words, EncodeFault]
_BEYOND_BINARY32 = (
    0x47EFFFFFF0000000,
    0x47F0000000000000,
    0xC7EFFFFFF0000000,
    0x7FEFFFFFFFFFFFFF,
)  # binary64


def refusals(kernel: Kernel) -> Iterator[_Refused]:
    """Name, source and what has to be said of it: words that are no numbers, scales that cannot be, several at once."""
    dtype, fmt = str(kernel.dtype), kernel.format
    own = SOURCE_DTYPES[dtype]
    group = fmt.group if isinstance(fmt, GroupedFormat) else 0
    columns = 2 * group + 3 if group else 131
    places = ((0, 0), (1, columns - 1), (2, columns // 2))

    def ones() -> Words:
        return np.full((3, columns), own.bias << own.fraction_bits, WORDS[dtype])

    def not_finite(row: int, column: int, word: int) -> EncodeFault:
        lane = divmod(column, group) if group else (0, column)
        return EncodeFault("source_not_finite", row, *lane, word)

    words = [own.exponent_mask, own.exponent_mask | own.sign_bit, own.exponent_mask | 1]
    words += [own.exponent_mask | own.sign_bit | 1 << (own.fraction_bits - 1), *_beyond(dtype)]
    for i, word in enumerate(words):
        row, column = places[i % len(places)]
        source = ones()
        source[row, column] = word
        yield f"refuses {word:#x}", source, not_finite(row, column, word)
    bad = _no_scale(fmt, dtype)
    nan = own.exponent_mask | 1
    twice = ones()
    twice[1, -1], twice[2, 0] = nan, nan
    yield "refuses the first of two rows", twice, not_finite(1, columns - 1, nan)
    if bad is None:
        return  # none of its words is too large, nor too small
    kind, word, raw = bad

    def no_scale(row: int, column: int) -> EncodeFault:
        return EncodeFault(kind, row, column // group if group else 0, None, raw)

    def spoilt(*rows: int) -> Words:
        source = ones()
        for row in rows:
            source[row, -1 if group else slice(None)] = word
        return source

    yield "refuses a scale", spoilt(1), no_scale(1, columns - 1)
    later = spoilt(1)
    later[2, 0] = nan
    yield "refuses a scale before a later NaN", later, no_scale(1, columns - 1)
    earlier = spoilt(1, 2)
    earlier[0, 5] = nan
    yield "refuses a NaN before a later scale", earlier, not_finite(0, 5, nan)
    within = spoilt(1)
    within[1, -2] = nan
    yield "refuses a NaN beside what spoils the scale", within, not_finite(1, columns - 2, nan)


def _beyond(dtype: str) -> tuple[int, ...]:
    """Finite source words that binary32 does not hold, from the one that just rounds to its infinity."""
    return _BEYOND_BINARY32 if dtype == "F64" else ()


def _no_scale(fmt: NumericFormat, dtype: str) -> tuple[Refusal, int, int] | None:
    """A fault of the scale, a source word that makes it when it is the largest of its group, and the raw scale."""
    if dtype == "F16":
        return None
    if isinstance(fmt, GroupedFormat):
        word = largest_word(dtype, np.inf)
        return "scale_overflow", word, maxabs_f16.raw_scale(fmt, _as_binary32(dtype, word))
    return "scale_underflow", 1, maxabs_bf16s.raw_scale(_as_binary32(dtype, 1))


def _as_binary32(dtype: str, word: int) -> int:
    return int(widened(dtype, np.array([word], WORDS[dtype]))[0])
