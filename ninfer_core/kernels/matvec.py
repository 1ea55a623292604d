"""A quantized matrix times a vector of BF16 words: the consumer on this machine's processor.

It reads the planes as their layouts store them and never forms the matrix. Sums are 128 binary32 accumulators a row,
each for one lane of a line; the row scale of FP8 and the divisor of NVFP4 come last. With activations of a middling size
no number on the way is subnormal; with others the accumulators are binary64, so a thread that flushes subnormals gets
the same words. `ninfer_core.matvec` says what is right.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, NVFP4, GroupedFormat, NumericFormat
from ninfer_core.kernels.cache import inline, kernel
from ninfer_core.kernels.reconstruct import fp8_values
from ninfer_core.kernels.registry import find_kernel
from ninfer_core.kernels.sizes import grouped_rows, require_row_scales, require_tiles
from ninfer_core.kernels.sources import DeviceClass
from ninfer_core.kernels.tiles import (
    LANES,
    LINE,
    QUARTERS,
    TILE,
    Array,
    bf16_of_binary32,
    binary32_of_binary64,
    scale_codes,
    scratch,
    unpack,
    widen_scales,
)
from ninfer_core.kernels.values import GroupedPlanes, read_only
from ninfer_core.words import (
    BINARY32,
    E2M1_AS_BINARY32,
    E4M3FN_AS_BINARY32,
    Words8,
    Words16,
    expand_bf16,
    finite_value,
    values_of_binary32,
)

Vector = NDArray[Any]

SMALLEST_EXPONENT: Final = 127 - 60  # of activations whose products and sums are zero or normal in binary32:
LARGEST_EXPONENT: Final = (
    127 + 60
)  # weights before their row scale or divisor are multiples of 2**-24 below 2**24


@inline
def add_products(values: Array, x: Array, lanes: int, sums: Array) -> None:
    """Add the products of a tile of binary32 values and activations to 128 accumulators, line after line."""
    whole = lanes // LINE
    left, right = values[: whole * LINE].reshape((whole, LINE)), x[: whole * LINE].reshape((whole, LINE))
    for i in range(whole):
        for lane in range(LINE):
            sums[lane] += left[i, lane] * right[i, lane]
    for lane in range(lanes - whole * LINE):
        sums[lane] += values[whole * LINE + lane] * x[whole * LINE + lane]


@inline
def output(sums: Array, scale: float, divisor: float, word: Array) -> int:
    """The BF16 word of the accumulators' sum times a scale over a divisor, both binary64; clears the accumulators."""
    for span in (64, 32, 16, 8, 4, 2, 1):
        for lane in range(span):
            sums[lane] += sums[lane + span]
    word.view(np.float64)[0] = np.float64(sums[0]) * scale / divisor
    sums[:] = 0
    return int(bf16_of_binary32(binary32_of_binary64(word[0])))


@kernel
def grouped(
    bits: int,
    group: int,
    columns: int,
    planes: tuple[Array, Array, Array],
    x: Array,
    out: Array,
) -> None:
    """Rows of codes and scales, planes as (base, high, scales), times x [columns] into BF16 words."""
    base, high, scales = planes
    codes, values = scratch(LANES).view(np.int8), scratch(4 * LANES).view(np.float32)
    quarters = np.empty(QUARTERS, np.float32)
    sums, word = np.zeros(LINE, x.dtype), np.empty(1, np.int64)
    row_lines = (columns + LINE - 1) // LINE
    for row in range(out.size):
        for first in range(0, row_lines, TILE):
            lines = min(TILE, row_lines - first)
            line, start = row * row_lines + first, first * LINE
            unpack(bits, base, high, line, lines, codes)
            widen_scales(scales, group, line, lines, quarters)
            scale_codes(codes, quarters, lines, values)
            add_products(values, x[start:], min(lines * LINE, columns - start), sums)
        out[row] = np.uint16(output(sums, 1.0, 1.0, word))


@kernel
def rows_of_fp8(codes: Array, scales: Array, x: Array, out: Array) -> None:
    """E4M3FN codes [rows, columns] and binary64 scales [rows]."""
    columns = codes.shape[1]
    values = scratch(4 * LANES).view(np.float32)
    sums, word = np.zeros(LINE, x.dtype), np.empty(1, np.int64)
    for row in range(out.size):
        for first in range(0, columns, LANES):
            tile = codes[row, first : first + LANES]
            fp8_values(tile, np.float32(1), values)
            add_products(values, x[first:], tile.size, sums)
        out[row] = np.uint16(output(sums, scales[row], 1.0, word))


@kernel
def nvfp4(
    codes: Array, scales: Array, divisor: float, columns: int, e2m1: Array, e4m3: Array, x: Array, out: Array
) -> None:
    """Codes u64 [rows * columns / 16] and scales in their swizzled tiles; the tables hold the values of all words."""
    groups = columns // 16
    values = np.empty(LINE, np.float32)
    sums, word = np.zeros(LINE, x.dtype), np.empty(1, np.int64)
    for row in range(out.size):
        # The layout's formula: 128 rows by four groups are one tile of 512 bytes.
        stripe = row // 128 * (columns // 64) * 512 + row % 32 * 16 + row % 128 // 32 * 4
        for start in range(0, groups, 8):
            count = min(8, groups - start)
            for i in range(count):
                group = start + i
                scale = e4m3[scales[stripe + group // 4 * 512 + group % 4]]
                sixteen = codes[row * groups + group]
                for lane in range(16):
                    code = sixteen >> np.uint64(4 * lane) & np.uint64(15)
                    values[i * 16 + lane] = e2m1[code] * scale
            add_products(values, x[start * 16 :], count * 16, sums)
        out[row] = np.uint16(output(sums, 1.0, divisor, word))


E2M1_VALUES: Final = E2M1_AS_BINARY32.view(np.float32)
E4M3_VALUES: Final = E4M3FN_AS_BINARY32.view(np.float32)


def activation_vector(words: Words16, columns: int) -> Vector:
    """The vector in the type that its products are added in. Raises: ValueError."""
    if words.shape != (columns,) or words.dtype != np.uint16:
        raise ValueError(f"{columns} columns need as many BF16 words")
    exponent = words >> 7 & 0xFF
    middling = (exponent >= SMALLEST_EXPONENT) & (exponent <= LARGEST_EXPONENT) | (words & 0x7FFF == 0)
    values = values_of_binary32(expand_bf16(words))
    return values.astype(np.float32) if middling.all() else values


def output_words(out: Words16, rows: int) -> Words16:
    """The output, when it is one. Raises: ValueError."""
    if out.shape != (rows,) or out.dtype != np.uint16 or not out.flags.c_contiguous:
        raise ValueError(f"the output must be contiguous and hold {rows} BF16 words")
    return out


def require_matrix(
    fmt: NumericFormat, rows: int, columns: int, activation: Words16, out: Words16, device_class: DeviceClass
) -> tuple[Vector, Words16]:
    """The vector in the type of its sums, and the output. Raises: ValueError; NoKernel, outside of the regime.

    The criterion says nothing of 2**20 terms, so no kernel answers for them.
    """
    vector, target = activation_vector(activation, columns), output_words(out, rows)
    find_kernel("matvec", fmt, "BF16", device_class, shape=(rows, columns))
    return vector, target


def matvec_grouped(
    fmt: GroupedFormat, columns: int, planes: GroupedPlanes, activation: Words16, out: Words16
) -> None:
    """BF16 words [rows] of a block of whole rows times an activation [columns]. Raises: ValueError, NoKernel."""
    rows = grouped_rows(fmt, columns, planes)
    vector, target = require_matrix(fmt, rows, columns, activation, out, "cpu")
    parts = (read_only(planes.base), read_only(planes.high), read_only(planes.scales))
    grouped(fmt.code_bits, fmt.group, columns, parts, vector, target)


def matvec_row(codes: Words8, scales: Words16, activation: Words16, out: Words16) -> None:
    """FP8 rows, codes [rows, columns] and scales [rows], times an activation [columns]. Raises: ValueError, NoKernel."""
    rows, columns = codes.shape
    require_row_scales(codes, scales)
    vector, target = require_matrix(FP8_E4M3FN_ROW_BF16S, rows, columns, activation, out, "cpu")
    own, factors = read_only(codes).reshape(codes.shape), values_of_binary32(expand_bf16(scales))
    rows_of_fp8(own, factors, vector, target)


def matvec_nvfp4(codes: Words8, scales: Words8, divisor: int, activation: Words16, out: Words16) -> None:
    """NVFP4 rows: packed codes [rows * columns / 2] and scales in the tiles of their layout, over one divisor word.

    Raises: ValueError, NoKernel.
    """
    rows, columns = out.size, activation.size
    require_tiles(codes, scales, rows, columns)
    vector, target = require_matrix(NVFP4, rows, columns, activation, out, "cpu")
    over, sixteens = float(finite_value(BINARY32, divisor)), read_only(codes).view(np.uint64)
    nvfp4(sixteens, read_only(scales), over, columns, E2M1_VALUES, E4M3_VALUES, vector, target)
