"""Parts of kernels: moving a tile of lanes in and out of the planes, and source words into binary32 words.

A *line* is 128 lanes, the alignment of a physical row, seen as four *quarters* of 32: a group of W8 is one quarter, a
group of the other formats two. A *tile* is up to `TILE` lines and stays in the first-level cache. What the compiler
needs to vectorise: slices with loops over their size, bodies over the four quarters of a line at once (a shorter
constant loop is unrolled instead), and few arrays per loop.
"""

from typing import Any, Final

import numpy as np

from ninfer_core.kernels import scalar
from ninfer_core.kernels.cache import inline, part

LINE: Final = 128
TILE: Final = 32
LANES: Final = LINE * TILE  # of a tile
QUARTERS: Final = 4 * TILE

# Source kinds, as the compiled code knows them.
KIND_BF16: Final = 0
KIND_F16: Final = 1
KIND_F32: Final = 2
KIND_F64: Final = 3
KINDS: Final = {"BF16": KIND_BF16, "F16": KIND_F16, "F32": KIND_F32, "F64": KIND_F64}

binary32_of_bf16 = inline(scalar.binary32_of_bf16)
binary32_of_binary16 = inline(scalar.binary32_of_binary16)
binary32_of_binary64 = inline(scalar.binary32_of_binary64)
binary16_of_binary32 = inline(scalar.binary16_of_binary32)
code_of_normalized = inline(scalar.code_of_normalized)
product_of_row = inline(scalar.product_of_row)
bf16_of_binary32 = inline(scalar.bf16_of_binary32)
row_scale32_of = inline(scalar.row_scale32_of)
reciprocal_of_row_scale = inline(scalar.reciprocal_of_row_scale)
product32 = inline(scalar.product32)
e4m3fn_of_binary32 = inline(scalar.e4m3fn_of_binary32)

Array = Any  # compiled functions take numpy arrays of the types their callers name


@inline
def scratch(size_bytes: int) -> Array:
    """Uninitialised bytes that start on a cache line: a vector across two lines costs twice."""
    raw = np.empty(size_bytes + 64, np.uint8)
    skip = (64 - np.int64(raw.ctypes.data) % 64) % 64
    return raw[skip : skip + size_bytes]


@part
def load(kind: int, source: Array, start: int, lanes: int, lines: int, words: Array) -> None:
    """Put source words [start, start + lanes) into `words` as binary32 words, zeros up to whole lines.

    The source comes as bytes, so that kernels are compiled once for all kinds.
    """
    out = words[:lanes]
    if kind == KIND_F64:
        long = source.view(np.int64)[start : start + lanes]
        for i in range(long.size):
            out[i] = np.uint32(binary32_of_binary64(long[i]))
    elif kind == KIND_F32:
        wide = source.view(np.uint32)[start : start + lanes]
        for i in range(wide.size):
            out[i] = wide[i]
    elif kind == KIND_BF16:
        short = source.view(np.uint16)[start : start + lanes]
        for i in range(short.size):
            out[i] = np.uint32(np.uint32(short[i]) << np.uint32(16))
    else:
        half = source.view(np.uint16)[start : start + lanes]
        for i in range(half.size):
            out[i] = np.uint32(binary32_of_binary16(np.int32(half[i])))
    rest = words[lanes : lines * LINE]
    for i in range(rest.size):
        rest[i] = np.uint32(0)


@inline
def unpack(bits: int, base: Array, high: Array, line: int, lines: int, codes: Array) -> None:
    """Signed codes of physical lines [line, line + lines) into `codes`, int8."""
    own = codes[: lines * LINE]
    if bits == 8:
        bytes8 = base[line * LINE : (line + lines) * LINE]
        for i in range(bytes8.size):
            own[i] = np.int8(bytes8[i])
        return
    pairs = own.view(np.uint16)
    nibbles = base[line * 64 : (line + lines) * 64]
    for i in range(nibbles.size):
        byte = np.uint16(nibbles[i])
        pairs[i] = (byte | (byte << np.uint16(4))) & np.uint16(0x0F0F)
    if bits == 5:
        eights = own.view(np.uint64)
        fifth = high[line * 16 : (line + lines) * 16]
        for i in range(fifth.size):
            # One copy of the byte per lane, bit i kept in lane i, then moved to bit 4 of its lane.
            spread = (np.uint64(fifth[i]) * np.uint64(0x0101010101010101)) & np.uint64(0x8040201008040201)
            spread = (spread + np.uint64(0x7F7F7F7F7F7F7F7F)) >> np.uint64(3)
            eights[i] = eights[i] | (spread & np.uint64(0x1010101010101010))
    elif bits == 6:
        fours = own.view(np.uint32)
        upper = high[line * 32 : (line + lines) * 32]
        for i in range(upper.size):
            two = np.uint32(upper[i])
            two = np.uint32(two | (two << np.uint32(6)) | (two << np.uint32(12)) | (two << np.uint32(18)))
            fours[i] = fours[i] | np.uint32((two & np.uint32(0x03030303)) << np.uint32(4))
    words, sign = own.view(np.uint8), np.uint8(1 << (bits - 1))
    for i in range(words.size):
        words[i] = np.uint8(np.uint8(words[i] ^ sign) - sign)  # extends the sign bit


@inline
def nibbles_of(pair: int) -> int:
    """The base byte of two codes, which `pair` holds in a byte each."""
    return np.uint8((pair & np.uint16(0x0F)) | ((pair >> np.uint16(4)) & np.uint16(0xF0)))  # type: ignore[return-value]


@inline
def fifth_bits_of(eight: int) -> int:
    """The high byte of eight codes of five bits."""
    # The multiplication brings bit 4 of lane i to bit 56 + i; no two partial products meet.
    bits = (eight >> np.uint64(4)) & np.uint64(0x0101010101010101)
    return np.uint8((bits * np.uint64(0x0102040810204080)) >> np.uint64(56))  # type: ignore[return-value]


@inline
def upper_bits_of(four: int) -> int:
    """The high byte of four codes of six bits."""
    two = np.uint32((four >> np.uint32(4)) & np.uint32(0x03030303))
    return np.uint8(np.uint32(two * np.uint32(0x01041040)) >> np.uint32(24))  # type: ignore[return-value]


@inline
def pack(bits: int, codes: Array, line: int, lines: int, base: Array, high: Array) -> None:
    """Write `codes`, int8, to physical lines [line, line + lines) of the planes."""
    own = codes[: lines * LINE]
    if bits == 8:
        target = base[line * LINE : (line + lines) * LINE]
        for i in range(target.size):
            target[i] = np.uint8(own[i])
        return
    pairs = own.view(np.uint16)
    nibbles = base[line * 64 : (line + lines) * 64]
    for i in range(nibbles.size):
        nibbles[i] = nibbles_of(pairs[i])
    if bits == 5:
        eights = own.view(np.uint64)
        fifth = high[line * 16 : (line + lines) * 16]
        for i in range(fifth.size):
            fifth[i] = fifth_bits_of(eights[i])
    elif bits == 6:
        fours = own.view(np.uint32)
        upper = high[line * 32 : (line + lines) * 32]
        for i in range(upper.size):
            upper[i] = upper_bits_of(fours[i])


@inline
def widen_scales(scales: Array, group: int, line: int, lines: int, quarters: Array) -> None:
    """The binary32 scale of every quarter of lines [line, line + lines)."""
    words = quarters.view(np.uint32)
    per_line = LINE // group
    own = scales[line * per_line : (line + lines) * per_line]
    if group == 32:
        for i in range(own.size):
            words[i] = np.uint32(binary32_of_binary16(np.int32(own[i])))
    else:
        for i in range(own.size):
            word = np.uint32(binary32_of_binary16(np.int32(own[i])))
            words[2 * i] = word
            words[2 * i + 1] = word


@inline
def scale_codes(codes: Array, quarters: Array, lines: int, values: Array) -> None:
    """Codes times the scale of their quarter; exact, never subnormal, and a zero keeps its sign."""
    rows, out = codes.reshape((TILE, LINE)), values[: lines * LINE].reshape((lines, LINE))
    for i in range(lines):
        a, b, c, d = quarters[4 * i], quarters[4 * i + 1], quarters[4 * i + 2], quarters[4 * i + 3]
        for lane in range(32):
            out[i, lane] = np.float32(rows[i, lane]) * a
            out[i, lane + 32] = np.float32(rows[i, lane + 32]) * b
            out[i, lane + 64] = np.float32(rows[i, lane + 64]) * c
            out[i, lane + 96] = np.float32(rows[i, lane + 96]) * d
