"""Streams of narrow codes and of base-N digits, whole arrays at a time and exact.

A stream fills its words from the least significant bit (scheme rule R1); words are little-endian, so a stream of words
is one of bytes. A code may straddle bytes and words. Digits follow R2: a unit of bytes is one little-endian integer
whose least significant digit comes first.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

Codes = NDArray[Any]  # uint8 up to eight bits, uint16 above
MAX_BITS: Final = 16
MAX_BASE: Final = 1 << 32


def code_dtype(bits: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds codes of so many bits. Raises: ValueError outside of 1..16."""
    if not 1 <= bits <= MAX_BITS:
        raise ValueError(f"codes have 1 to {MAX_BITS} bits, not {bits}")
    return np.dtype(np.uint8 if bits <= 8 else np.uint16)


def words_for(bits: int, count: int, word_bits: int = 32) -> int:
    """How many words a stream of `count` codes takes."""
    return -(-bits * count // word_bits)


def stream_of(words: NDArray[Any], axis: int = -1) -> NDArray[np.uint8]:
    """The bytes of integer words, the stream's axis moved last: uint8[..., bytes]."""
    moved = np.moveaxis(words, axis, -1)
    little = np.ascontiguousarray(moved, dtype=moved.dtype.newbyteorder("<"))
    size = little.dtype.itemsize
    if size == 1:
        return little.view(np.uint8)
    if little.size == 0:  # a view cannot rescale an axis of no length
        return np.zeros((*little.shape[:-1], little.shape[-1] * size), np.uint8)
    return little.view(np.uint8)


def codes_of(words: NDArray[Any], bits: int, count: int, axis: int = -1) -> Codes:
    """The first `count` codes of each stream along `axis`, whose length becomes `count`.

    Raises: ValueError where the words hold fewer.
    """
    dtype = code_dtype(bits)
    stream = stream_of(words, axis)
    held = stream.shape[-1]
    if count < 0 or bits * count > 8 * held:
        raise ValueError(f"{count} codes of {bits} bits do not fit into {held} bytes")
    if not count or not stream.size:  # nothing to read, and the other axes may say any number
        return np.moveaxis(np.zeros((*stream.shape[:-1], count), dtype), -1, axis)
    if bits == 8:
        return np.moveaxis(stream[..., :count], -1, axis)
    # Eight codes start on a byte again after `bits` bytes. Two more bytes, so that reading ahead ends inside.
    periods = -(-count // 8)
    padded = np.zeros((*stream.shape[:-1], periods * bits + 2), np.uint8)
    taken = min(held, periods * bits)
    padded[..., :taken] = stream[..., :taken]
    codes = np.empty((*stream.shape[:-1], periods, 8), dtype)
    mask = np.uint32((1 << bits) - 1)
    for place in range(8):
        byte, shift = divmod(place * bits, 8)
        window = np.zeros((*stream.shape[:-1], periods), np.uint32)
        for extra in range(-(-(shift + bits) // 8)):
            first = byte + extra
            part = padded[..., first : first + periods * bits : bits][..., :periods]
            window |= part.astype(np.uint32) << np.uint32(8 * extra)
        codes[..., place] = (window >> np.uint32(shift)) & mask
    flat = codes.reshape(*stream.shape[:-1], periods * 8)[..., :count]
    return np.moveaxis(flat, -1, axis)


def words_of(codes: NDArray[Any], bits: int, dtype: DTypeLike = np.uint8, axis: int = -1) -> NDArray[Any]:
    """The words that hold unsigned codes as streams along `axis`; bits of the last word that hold none are zero.

    Raises: ValueError for a code that needs more bits.
    """
    code_dtype(bits)
    if codes.size and (int(codes.max()) >> bits or int(codes.min()) < 0):
        raise ValueError(f"a code needs more than {bits} bits")
    word = np.dtype(dtype).newbyteorder("<")
    moved = np.moveaxis(codes, axis, -1)
    count = moved.shape[-1]
    periods = -(-count // 8)
    padded = np.zeros((*moved.shape[:-1], periods * 8), np.uint32)
    padded[..., :count] = moved
    eights = padded.reshape(*moved.shape[:-1], periods, 8)
    stream = np.zeros((*moved.shape[:-1], periods, bits), np.uint8)
    for place in range(8):
        byte, shift = divmod(place * bits, 8)
        window = eights[..., place] << np.uint32(shift)
        for extra in range(-(-(shift + bits) // 8)):
            stream[..., byte + extra] |= (window >> np.uint32(8 * extra)).astype(np.uint8)
    number = words_for(bits, count, 8 * word.itemsize)
    held = np.zeros((*moved.shape[:-1], number * word.itemsize), np.uint8)
    taken = min(held.shape[-1], periods * bits)
    held[..., :taken] = stream.reshape(*moved.shape[:-1], periods * bits)[..., :taken]
    words = held.view(word) if held.size else np.zeros((*moved.shape[:-1], number), word)
    return np.moveaxis(words.astype(np.dtype(dtype), copy=False), -1, axis)


def signed(codes: Codes, bits: int) -> NDArray[Any]:
    """Codes read as two's complement numbers of `bits` bits: int8 or int16."""
    wide = code_dtype(bits).itemsize * 8
    type_ = np.dtype(np.int8 if wide == 8 else np.int16)
    lift = wide - bits
    lifted: NDArray[Any] = np.left_shift(codes, codes.dtype.type(lift)).view(type_)
    lifted >>= type_.type(lift)
    return lifted


def spare_bytes(words: NDArray[Any], bits: int, count: int, axis: int = -1) -> NDArray[np.uint8]:
    """What each stream holds behind its `count` codes: its last bytes, with the bits of codes made zero."""
    stream = stream_of(words, axis)
    byte, shift = divmod(bits * count, 8)
    rest = stream[..., byte:].copy()
    if shift and rest.shape[-1]:
        rest[..., 0] &= np.uint8(0xFF << shift & 0xFF)
    return rest


def digits_of(
    units: NDArray[np.uint8], base: int, count: int
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """The `count` digits of each unit, uint32[..., count], from units uint8[..., bytes]; and which units are too large.

    A unit is too large where its integer is above base**count - 1 (R2); its digits are then the lowest ones.
    """
    if not 2 <= base <= MAX_BASE:
        raise ValueError(f"a base is 2 to {MAX_BASE}, not {base}")
    rest = units.astype(np.uint64)
    digits = np.empty((*units.shape[:-1], count), np.uint32)
    divisor = np.uint64(base)
    for place in range(count):  # long division: a remainder below 2**32 and a byte stay below 2**40
        carry = np.zeros(units.shape[:-1], np.uint64)
        for byte in range(units.shape[-1] - 1, -1, -1):
            carry = (carry << np.uint64(8)) | rest[..., byte]
            rest[..., byte] = carry // divisor
            carry %= divisor
        digits[..., place] = carry
    return digits, np.asarray(rest.any(axis=-1))


def units_of(digits: NDArray[Any], base: int, size: int) -> NDArray[np.uint8]:
    """Units of `size` bytes, uint8[..., size], from digits [..., count], the first one least significant.

    Raises: ValueError for a digit outside of the base or a unit that cannot hold so many.
    """
    count = digits.shape[-1]
    if not 2 <= base <= MAX_BASE or base**count > 256**size:
        raise ValueError(f"{count} digits in base {base} do not fit into {size} bytes")
    if digits.size and (int(digits.max()) >= base or int(digits.min()) < 0):
        raise ValueError(f"a digit is none of base {base}")
    held = np.zeros((*digits.shape[:-1], size), np.uint64)
    for place in range(count - 1, -1, -1):
        carry = digits[..., place].astype(np.uint64)
        for byte in range(size):
            carry += held[..., byte] * np.uint64(base)
            held[..., byte] = carry & np.uint64(0xFF)
            carry >>= np.uint64(8)
    return held.astype(np.uint8)
