"""Stored blocks as binary32 or BF16 words, immune to flush-to-zero modes of the calling thread.

Grouped formats: a widened binary16 scale is a normal binary32 number and so is its exact product with a code of
at most eight bits, so the multiplication meets no subnormal. FP8 rows: the same holds while the row scale is
zero or at least 2**-117; the few smaller scales go through a table made by integers. NVFP4: always a table.
"""

import numpy as np

from ninfer_core.kernels.cache import inline, kernel
from ninfer_core.kernels.tiles import (
    LANES,
    LINE,
    QUARTERS,
    TILE,
    Array,
    binary32_of_bf16,
    product_of_row,
    scale_codes,
    scratch,
    unpack,
    widen_scales,
)

SMALLEST_SAFE_ROW_SCALE = (
    127 - 117
) << 7  # BF16 word of 2**-117: times 2**-9, the smallest code, still normal


@inline
def store32(values: Array, lanes: int, out: Array, start: int) -> None:
    """Binary32 words of a tile of binary32 values."""
    words, target = values[:lanes].view(np.uint32), out[start : start + lanes]
    for i in range(words.size):
        target[i] = words[i]


@inline
def rounded(value: float) -> int:
    """The BF16 word nearest to a binary32 value, with integers: no rounding mode of the thread matters.

    The rule of `scalar.bf16_of_binary32` less its care for NaN: the only NaN here has no payload to round.
    """
    word = np.float32(value).view(np.uint32)
    odd = np.uint32((word >> np.uint32(16)) & np.uint32(1))
    return np.uint16(np.uint32(word + np.uint32(0x7FFF) + odd) >> np.uint32(16))  # type: ignore[return-value]


@inline
def scale_to_bf16(codes: Array, quarters: Array, lines: int, out: Array) -> None:
    """Whole lines of codes times the scale of their quarter into BF16 words, without a stop in memory."""
    rows = codes.reshape((TILE, LINE))
    for i in range(lines):
        a, b, c, d = quarters[4 * i], quarters[4 * i + 1], quarters[4 * i + 2], quarters[4 * i + 3]
        for lane in range(32):
            out[i, lane] = rounded(np.float32(rows[i, lane]) * a)
            out[i, lane + 32] = rounded(np.float32(rows[i, lane + 32]) * b)
            out[i, lane + 64] = rounded(np.float32(rows[i, lane + 64]) * c)
            out[i, lane + 96] = rounded(np.float32(rows[i, lane + 96]) * d)


@inline
def store16(values: Array, lanes: int, out: Array, start: int) -> None:
    """BF16 words nearest to a tile of binary32 values."""
    own, target = values[:lanes], out[start : start + lanes]
    for i in range(own.size):
        target[i] = rounded(own[i])


@kernel
def grouped(
    bits: int,
    group: int,
    rows: int,
    columns: int,
    base: Array,
    high: Array,
    scales: Array,
    wide: bool,
    out: Array,
) -> None:
    """Logical lanes of a block of rows into `out`, flat; 32-bit words when `wide`, else BF16 words."""
    codes, values = scratch(LANES).view(np.int8), scratch(4 * LANES).view(np.float32)
    quarters = np.empty(QUARTERS, np.float32)
    row_lines = (columns + LINE - 1) // LINE
    for row in range(rows):
        for first in range(0, row_lines, TILE):
            lines = min(TILE, row_lines - first)
            lanes = min(lines * LINE, columns - first * LINE)
            line, start = row * row_lines + first, row * columns + first * LINE
            unpack(bits, base, high, line, lines, codes)
            widen_scales(scales, group, line, lines, quarters)
            if not wide and lanes == lines * LINE:
                scale_to_bf16(codes, quarters, lines, out[start : start + lanes].reshape((lines, LINE)))
                continue
            scale_codes(codes, quarters, lines, values)
            if wide:
                store32(values, lanes, out, start)
            else:
                store16(values, lanes, out, start)


@inline
def fp8_values(codes: Array, scale: float, values: Array) -> None:
    """E4M3FN codes, widened, times a scale with which every product is zero, normal or infinite."""
    words = values.view(np.uint32)
    for i in range(codes.size):
        magnitude = np.uint32(codes[i] & np.uint8(0x7F))
        sign = np.uint32(codes[i] & np.uint8(0x80)) << np.uint32(24)
        normal = np.uint32((magnitude << np.uint32(20)) + np.uint32(120 << 23))
        words[i] = (normal if magnitude != 0x7F else np.uint32(0x7FC00000)) | sign
    for i in range(codes.size):
        magnitude8 = codes[i] & np.uint8(0x7F)
        small = np.float32(np.int32(magnitude8)) * np.float32(0.001953125)
        wide = small if magnitude8 < 8 else values[i]
        if magnitude8 < 8 and codes[i] >= 0x80:
            wide = -wide
        values[i] = wide * scale


@inline
def fp8_to_bf16(codes: Array, scale: float, out: Array) -> None:
    """BF16 words of E4M3FN codes times a scale as in `fp8_values`: the binary32 product has 12 bits, so one rounding.

    A loop of its own, without a stop in memory. NaN and sign are put in among the narrow words, where it is cheaper.
    """
    least = np.float32(scale * np.float32(0.001953125))  # of a subnormal code's unit; zero or normal
    for i in range(codes.size):
        magnitude = np.uint32(codes[i]) & np.uint32(0x7F)
        tiny = magnitude < 8
        normal = np.uint32((magnitude << np.uint32(20)) + np.uint32(120 << 23)).view(np.float32)
        value = np.float32(np.int32(magnitude)) if tiny else normal
        word = rounded(value * (least if tiny else scale))
        code = np.uint16(codes[i])
        word = word if (code & np.uint16(0x7F)) != 0x7F else np.uint16(0x7FC0)
        out[i] = np.uint16(word | np.uint16((code & np.uint16(0x80)) << np.uint16(8)))


@kernel
def rows_of_fp8(codes: Array, scales: Array, wide: bool, out: Array) -> None:
    """FP8 rows [rows, columns] into `out`, flat."""
    rows, columns = codes.shape
    values = scratch(4 * LANES).view(np.float32)
    words = values.view(np.uint32)
    table = np.empty(256, np.uint32)
    scale_word = np.empty(1, np.uint32)
    for row in range(rows):
        scale = np.int64(scales[row])
        safe = scale == 0 or SMALLEST_SAFE_ROW_SCALE <= scale <= 0x7F7F
        scale_word[0] = binary32_of_bf16(scale)
        if not safe:
            for code in range(256):
                table[code] = product_of_row(code, scale)
        for first in range(0, columns, LANES):
            tile = codes[row, first : first + LANES]
            if safe and not wide:
                start = row * columns + first
                fp8_to_bf16(tile, scale_word.view(np.float32)[0], out[start : start + tile.size])
                continue
            if safe:
                fp8_values(tile, scale_word.view(np.float32)[0], values)
            else:
                for i in range(tile.size):
                    words[i] = table[tile[i]]
            if wide:
                store32(values, tile.size, out, row * columns + first)
            else:
                store16(values, tile.size, out, row * columns + first)


@kernel
def nvfp4(codes: Array, scales: Array, magnitudes: Array, sign_shift: int, out: Array) -> None:
    """NVFP4 groups into `out`, flat: codes u64 [groups], scales u8 [groups] in natural order.

    magnitudes [256, 8] holds the output word of every nonnegative code under every scale word.
    """
    for i in range(scales.size):
        row, sixteen = magnitudes[scales[i]], codes[i]
        for lane in range(16):
            code = (sixteen >> np.uint64(4 * lane)) & np.uint64(15)
            out[i * 16 + lane] = row[code & np.uint64(7)] | ((code >> np.uint64(3)) << np.uint64(sign_shift))
