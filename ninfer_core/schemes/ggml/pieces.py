"""What several block types share: binary16 scales, orders of packed codes, six-bit scales, sign codes.

`n` is the number of blocks; all results are new arrays. Scheme specification, section 4, "Shared pieces".
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.form import Values
from ninfer_core.words import expand_binary16

Words = NDArray[Any]
Codes = NDArray[Any]  # uint8


def half(words: Words) -> Values:
    """The values of binary16 words, exact."""
    return expand_binary16(words).view(np.float32)


def real(codes: Words) -> Values:
    """Small integers as binary32 numbers."""
    return codes.astype(np.float32)


def nibbles(packed: Codes) -> Codes:
    """[..., m] bytes to [..., 2 m] codes: all low nibbles, then all high ones (N32, where m is 16)."""
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


def nibbles_in_turn(packed: Codes) -> Codes:
    """[..., m] bytes to [..., 2 m] codes: the low nibble of a byte, then its high one."""
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)


def pairs(packed: Codes) -> Codes:
    """P2: bytes [n, 64] to two-bit codes [n, 256]; element 128 h + 32 s + m is bits 2 s and 2 s + 1 of byte 32 h + m."""
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    codes: Codes = packed.reshape(-1, 2, 1, 32) >> shifts & 3
    return codes.reshape(-1, 256)


def bits(packed: Codes) -> Codes:
    """[n, m] bytes to [n, 8 m] bits, low first."""
    return np.unpackbits(packed, axis=-1, bitorder="little")


def six_bit_scales(packed: Codes) -> tuple[Codes, Codes]:
    """S6: bytes [n, 12] to eight scales and eight mins, [n, 8] each."""
    first, second, last = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scales = np.concatenate([first & 63, last & 15 | first >> 6 << 4], axis=1)
    mins = np.concatenate([second & 63, last >> 4 | second >> 6 << 4], axis=1)
    return scales, mins


def signs(bytes_of_signs: Codes) -> Values:
    """Bytes [...] to +1 and -1 [..., 8]: a set bit, low first, negates."""
    return real(1 - 2 * bits(bytes_of_signs[..., None]).astype(np.int8))


def even_signs(seven: Words) -> Values:
    """par7: codes of seven signs [...] to eight [..., 8], the last of which makes the number of minus signs even."""
    codes = seven.astype(np.uint8)
    ones = np.bitwise_count(codes)
    return signs(codes | (ones & 1) << 7)


def split_half(words: Words) -> Words:
    """The binary16 words that the top nibbles of four words [n, 4] make, lowest first."""
    tops = words >> 12 << np.arange(0, 16, 4, dtype=np.uint16)
    joined: Words = np.bitwise_or.reduce(tops, axis=1)
    return joined
