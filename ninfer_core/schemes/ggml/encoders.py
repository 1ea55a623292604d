"""The canonical encoders: byte for byte what ggml's C library makes without importance weights (section 4, "Encoding").

"x / d" is x times the binary32 reciprocal of the unrounded d, which becomes binary16 only when it is stored. Every
function takes finite values [n, values] and fills zeroed records. Every operation rounds: a compiler that fuses a product
and a sum picks another code at some ties.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.form import Values
from ninfer_core.schemes.ggml.block import Blocks
from ninfer_core.schemes.ggml.pieces import Codes
from ninfer_core.schemes.ggml.tables import mxfp4_table, stq1_0_lanes
from ninfer_core.schemes.scales import half_away
from ninfer_core.words import narrow_bf16

Words = NDArray[Any]
_AT_ONCE: Final = 4096  # blocks whose distances to all levels are held at once


def bf16(values: Values, blocks: Blocks) -> None:
    """Nearest, ties to even; a NaN becomes quiet."""
    blocks["value"] = narrow_bf16(values[:, 0].view(np.uint32))


def q4_0(values: Values, blocks: Blocks) -> None:
    """d = x_max / -8, q = min(15, trunc(x / d + 8.5))."""
    d = _largest(values) / np.float32(-8)
    blocks["d"] = _half(d)
    blocks["qs"] = _nibbles(_truncated(_over(values, d) + np.float32(8.5), 15))


def q4_1(values: Values, blocks: Blocks) -> None:
    """d = (max - min) / 15, q = min(15, trunc((x - min) / d + 0.5))."""
    blocks["d"], blocks["m"], codes = _affine(values, 15)
    blocks["qs"] = _nibbles(codes)


def q5_0(values: Values, blocks: Blocks) -> None:
    """d = x_max / -16, q = min(31, trunc(x / d + 16.5))."""
    d = _largest(values) / np.float32(-16)
    blocks["d"] = _half(d)
    _store_five_bits(_truncated(_over(values, d) + np.float32(16.5), 31), blocks)


def q5_1(values: Values, blocks: Blocks) -> None:
    """As Q4_1 with 31."""
    blocks["d"], blocks["m"], codes = _affine(values, 31)
    _store_five_bits(codes, blocks)


def q8_0(values: Values, blocks: Blocks) -> None:
    """d = max|x| / 127, q = round(x / d), halves away from zero."""
    d = _largest_magnitude(values) / np.float32(127)
    blocks["d"] = _half(d)
    blocks["qs"] = half_away(_over(values, d)).astype(np.int8)


def q1_0(values: Values, blocks: Blocks) -> None:
    """d = mean|x|, added up in order; the bit says x >= 0."""
    sums: Values = np.add.accumulate(np.abs(values), axis=1, dtype=np.float32)[:, -1]
    blocks["d"] = _half(sums / np.float32(values.shape[1]))
    blocks["bits"] = np.packbits(values >= 0, axis=1, bitorder="little")


def tq1_0(values: Values, blocks: Blocks) -> None:
    """d = max|x|, digit = round(x / d) + 1, the first of a byte most significant, byte = ceil(256 v / 243)."""
    blocks["d"], digits = _ternary(values)
    n = len(values)
    blocks["qs"][:, :32] = _packed_digits(digits[:, :160].reshape(n, 5, 32))
    blocks["qs"][:, 32:] = _packed_digits(digits[:, 160:240].reshape(n, 5, 16))
    blocks["qh"] = _packed_digits(digits[:, 240:].reshape(n, 4, 4))


def tq2_0(values: Values, blocks: Blocks) -> None:
    """d = max|x|, q = round(x / d) + 1."""
    blocks["d"], digits = _ternary(values)
    planes = digits.reshape(-1, 2, 4, 32) << np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    blocks["qs"] = np.bitwise_or.reduce(planes, axis=2).reshape(-1, 64)


def stq1_0(values: Values, blocks: Blocks) -> None:
    """d = max|x|; of each four lanes the smallest, the first of equals, becomes zero, and the others their signs (5.8)."""
    blocks["d"] = _half(_largest_magnitude(values))
    lanes = values.reshape(-1, 4, 4, 16).transpose(0, 1, 3, 2).reshape(-1, 64, 4)
    zero = np.argmin(np.abs(lanes), axis=2)
    signs = np.where(np.signbit(lanes), -1, 1).astype(np.int8)
    np.put_along_axis(signs, zero[:, :, None], 0, axis=2)
    index = _stq1_0_index()[((signs + 1) * [27, 9, 3, 1]).sum(axis=2)]
    blocks["codes"] = index[:, 0::2] & 15 | (index[:, 1::2] & 15) << 4
    blocks["signs"] = np.packbits(index >> 4, axis=1, bitorder="little")


def mxfp4(values: Values, blocks: Blocks) -> None:
    """e = floor(log2 max|x|) - 2 + 127, q the nearest level, the one of the smaller code between two equally near."""
    exponent = np.frexp(_largest_magnitude(values))[1] - 1
    nonzero = values.any(axis=1)
    blocks["e"] = np.where(nonzero, np.maximum(exponent - 2 + 127, 0), 0)
    table = mxfp4_table()
    for start in range(0, len(values), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        levels = table[blocks["e"][some]]
        distances = np.abs(levels[:, None, :] - values[some, :, None])
        blocks["qs"][some] = _nibbles(np.argmin(distances, axis=2).astype(np.uint8))


def _half(values: Values) -> Words:
    """Binary16 words nearest to numbers."""
    return values.astype(np.float16).view(np.uint16)


def _over(values: Values, d: Values) -> Values:
    """Values times the reciprocals of d, which is zero where binary32 does not hold it."""
    reciprocal = np.float32(1) / d
    reciprocal[~np.isfinite(reciprocal)] = 0
    return values * reciprocal[:, None]


def _largest_magnitude(values: Values) -> Values:
    largest: Values = np.abs(values).max(axis=1)
    return largest


def _largest(values: Values) -> Values:
    """The value of largest magnitude of each block, the first of equals; zero is positive."""
    return _at(values, np.argmax(np.abs(values), axis=1)) + np.float32(0)


def _at(values: Values, places: NDArray[np.intp]) -> Values:
    """One value of each block."""
    found: Values = np.take_along_axis(values, places[:, None], axis=1)[:, 0]
    return found


def _truncated(values: Values, top: int) -> Codes:
    """Numbers of at least zero without their fractions, at most `top`."""
    return np.minimum(values, np.float32(top)).astype(np.uint8)


def _affine(values: Values, top: int) -> tuple[Words, Words, Codes]:
    """Words of d and m, and codes from 0 to `top`."""
    least = _at(values, np.argmin(values, axis=1))  # the first of equals: a zero has a sign
    d = (values.max(axis=1) - least) / np.float32(top)
    codes = _truncated(_over(values - least[:, None], d) + np.float32(0.5), top)
    return _half(d), _half(least), codes


def _ternary(values: Values) -> tuple[Words, Codes]:
    """Words of d, and digits 0, 1, 2."""
    d = _largest_magnitude(values)
    return _half(d), (half_away(_over(values, d)) + 1).astype(np.uint8)


def _nibbles(codes: Codes) -> Codes:
    """N32: codes [n, 32] to bytes [n, 16]."""
    packed: Codes = codes[:, :16] | codes[:, 16:] << 4
    return packed


def _store_five_bits(codes: Codes, blocks: Blocks) -> None:
    blocks["qs"] = _nibbles(codes & 15)
    high = np.packbits(codes >> 4, axis=1, bitorder="little")
    blocks["qh"] = high.view("<u4")[:, 0]


def _packed_digits(digits: Codes) -> Codes:
    """Digits [n, 4 or 5, m] to bytes [n, m]; a fifth that is not there is zero."""
    weights = np.array([81, 27, 9, 3, 1], np.uint32)[: digits.shape[1], None]
    number = (digits * weights).sum(axis=1, dtype=np.uint32)
    packed: Codes = ((256 * number + 242) // 243).astype(np.uint8)
    return packed


def _stq1_0_index() -> Codes:
    """code + 16 sign of four lanes as base-3 digits, the first most significant."""
    index = np.zeros(81, np.uint8)
    for entry, lanes in enumerate(stq1_0_lanes()):
        index[int(((lanes + 1) * [27, 9, 3, 1]).sum())] = entry
    return index
