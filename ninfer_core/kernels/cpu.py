"""The kernels to call: numpy arrays in, plain values out. Importing this module loads the compiler.

A *block* is some whole rows of a matrix [N, K], or a run of columns of one row that starts at a multiple of 128
and ends at the row's end or at another such multiple. Arrays are C-contiguous; words of a foreign byte order are
not taken. Each kernel is compiled on its first use and releases the interpreter lock.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.encoders import maxabs_bf16s
from ninfer_core.encoders.maxabs_f16 import raw_scale, to_binary32
from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels import apart as _apart
from ninfer_core.kernels import canonical as _canonical
from ninfer_core.kernels import encode as _encode
from ninfer_core.kernels import encode_rows as _encode_rows
from ninfer_core.kernels import parity as _parity
from ninfer_core.kernels import reconstruct as _reconstruct
from ninfer_core.kernels import scan as _scan
from ninfer_core.kernels import shapes as _shapes
from ninfer_core.kernels import statistics as _statistics
from ninfer_core.kernels import tiles as _tiles
from ninfer_core.kernels.floating import standard_mode
from ninfer_core.kernels.histogram import count_packed
from ninfer_core.kernels.sizes import (
    grouped_rows,
    require_block_scales,
    require_row_scales,
    require_source,
    writable,
)
from ninfer_core.kernels.values import (
    SOURCE_DTYPES,
    CodeStatistics,
    EncodeCounts,
    EncodeFault,
    ErrorSums,
    GroupedPlanes,
    WordStatistics,
)
from ninfer_core.kernels.values import read_only as _input
from ninfer_core.layouts.row_split import groups_per_row, high_bytes
from ninfer_core.reconstruct import reconstruct_nvfp4 as nvfp4_word
from ninfer_core.words import (
    BINARY32,
    LARGEST_BLOCK_SCALE,
    Words8,
    Words16,
    Words32,
    narrow_bf16,
)

Words = NDArray[Any]


def _planes(planes: GroupedPlanes) -> tuple[Words, Words, Words]:
    return _input(planes.base), _input(planes.high), _input(planes.scales)


def _geometry(fmt: GroupedFormat, columns: int, planes: GroupedPlanes) -> tuple[int, int]:
    """Rows and columns for the kernel: rows without padding are one long row. Raises: ValueError."""
    rows = grouped_rows(fmt, columns, planes)
    return (1, rows * columns) if columns % 128 == 0 and rows else (rows, columns)


def _source(words: Words, dtype: str) -> Words8:
    require_source(words, dtype)
    return _input(words).view(np.uint8)


def encode(fmt: GroupedFormat, source: Words, dtype: str, out: GroupedPlanes) -> EncodeFault | EncodeCounts:
    """Encode source words [rows, columns] into `out`, padding included; on a fault `out` is undefined."""
    rows, columns = source.shape
    height, width = _geometry(fmt, columns, out)
    if height * width != rows * columns:
        raise ValueError(f"planes of {height * width} weights cannot take {rows * columns}")
    counts = np.zeros(2, np.int64)
    refused = _encode.encode_block(
        _tiles.KINDS[dtype],
        _source(source, dtype),
        height,
        width,
        fmt.code_bits,
        fmt.group,
        fmt.qmax,
        out.base,
        out.high,
        out.scales,
        counts,
    )
    if refused < 0:
        return EncodeCounts(rescued=int(counts[0]), clamped=int(counts[1]))
    return encode_fault(fmt, source, dtype, *divmod(refused, groups_per_row(fmt, columns)))


def encode_fault(fmt: GroupedFormat, source: Words, dtype: str, row: int, group: int) -> EncodeFault:
    """What is wrong with a group that the kernel refused; exact integers, off the fast path."""
    lanes = source[row, group * fmt.group : (group + 1) * fmt.group]
    words32 = [to_binary32(SOURCE_DTYPES[dtype], int(word)) for word in lanes]
    for lane, word in enumerate(words32):
        if word is None:
            return EncodeFault("source_not_finite", row, group, lane, int(lanes[lane]))
    amax = max(word & 0x7FFFFFFF for word in words32 if word is not None)
    return EncodeFault("scale_overflow", row, group, None, raw_scale(fmt, amax))


def largest_magnitudes(source: Words, dtype: str) -> Words32:
    """The largest binary32 magnitude word of each row of source words [rows, columns]; NaN is above infinity."""
    rows, columns = source.shape
    largest = np.zeros(rows, np.uint32)
    _encode_rows.largest_magnitudes(_tiles.KINDS[dtype], _source(source, dtype), rows, columns, largest)
    return largest


def encode_rows(
    source: Words, dtype: str, largest: Words32, codes: Words8, scales: Words16
) -> EncodeFault | EncodeCounts:
    """Encode source words [rows, columns] as FP8 rows into `codes` (as many bytes) and `scales` [rows].

    `largest` [rows] is the largest magnitude of each whole row: `source` may hold a part of the columns only. On a
    fault the outputs are undefined.
    """
    rows, columns = source.shape
    if largest.size != rows or scales.size != rows:
        raise ValueError(f"{rows} rows need as many magnitudes and scales")
    counts = np.zeros(1, np.int64)
    refused = _encode_rows.encode_rows(
        _tiles.KINDS[dtype],
        _source(source, dtype),
        rows,
        columns,
        _input(largest),
        writable(codes, source.size),
        writable(scales, rows),
        counts,
    )
    if refused < 0:
        return EncodeCounts(rescued=0, clamped=int(counts[0]))
    return _row_fault(source[refused], dtype, int(refused), int(largest[refused]))


def _row_fault(lanes: Words, dtype: str, row: int, largest: int) -> EncodeFault:
    if largest < BINARY32.exponent_mask:
        return EncodeFault("scale_underflow", row, 0, None, maxabs_bf16s.raw_scale(largest))
    magnitudes = largest_magnitudes(lanes.reshape(-1, 1), dtype)
    beyond = np.flatnonzero(magnitudes >= BINARY32.exponent_mask)
    if beyond.size == 0:
        return EncodeFault("source_not_finite", row, 0, None, largest)
    return EncodeFault("source_not_finite", row, 0, int(beyond[0]), int(lanes[beyond[0]]))


def scan_grouped(fmt: GroupedFormat, columns: int, planes: GroupedPlanes) -> int:
    """What is wrong with a block, as bits; 0 when nothing is.

    1: an invalid logical scale word; 2: a zero scale over a nonzero logical code; 4: code -128 of W8 in a logical
    lane; 8: a nonzero padding lane, or a nonzero code or scale of a wholly physical group.
    """
    rows, width = _geometry(fmt, columns, planes)
    base, high, scales = _planes(planes)
    words = high_bytes(fmt) // 8
    return int(_scan.scan_grouped(fmt.code_bits, fmt.group, rows, width, base, high, scales, words))


def scan_row(codes: Words8, scales: Words16) -> int:
    """FP8 rows: bit 1 an invalid scale, 2 a zero scale over a code that is not zero, 4 a NaN code."""
    require_row_scales(codes, scales)
    return int(_scan.scan_row(_input(codes).reshape(codes.shape), _input(scales)))


def scan_block_scales(scales: Words8) -> int:
    """NVFP4 scales: bit 1 when a word is negative or NaN."""
    return _scan.INVALID_SCALE if _scan.largest_byte(_input(scales)) > LARGEST_BLOCK_SCALE else 0


def any_nonzero(data: Words8) -> bool:
    """True when some byte is not zero."""
    return bool(_scan.any_nonzero(_input(data)))


def same_bytes(a: Words, b: Words) -> bool:
    """True when two arrays hold the same bytes."""
    left, right = _input(a).view(np.uint8), _input(b).view(np.uint8)
    return left.size == right.size and bool(_scan.same_bytes(left, right))


def same_planes(a: GroupedPlanes, b: GroupedPlanes) -> bool:
    """True when two blocks hold the same codes and scale words, padding included."""
    return same_bytes(a.scales, b.scales) and same_bytes(a.base, b.base) and same_bytes(a.high, b.high)


def odd_groups(fmt: GroupedFormat, columns: int, planes: GroupedPlanes) -> tuple[int, int]:
    """How many groups of a block no canonical encoder makes, and the first one, counted over physical groups.

    Groups under a zero or an invalid scale are left to `scan_grouped`; padding is not looked at.
    """
    rows, width = _geometry(fmt, columns, planes)
    found = np.array([0, -1], np.int64)
    _shapes.grouped(fmt.code_bits, fmt.group, fmt.qmax, rows, width, *_planes(planes), found)
    return int(found[0]), int(found[1])


def row_masks(codes: Words8, masks: Words8) -> None:
    """OR into `masks` [rows] what FP8 codes [rows, columns] hold: 1 magnitude 0x7e, 2 a magnitude, 4 word 0x80."""
    _shapes.row_masks(_input(codes).reshape(codes.shape), writable(masks, codes.shape[0]))


def largest_magnitude(words: Words) -> int:
    """The largest of 16- or 32-bit words without their sign bits, 0 of none."""
    largest = _shapes.largest16 if words.dtype == np.uint16 else _shapes.largest32
    return int(largest(_input(words)))


def used_bits(words: Words32) -> int:
    """The bits that are set in some word."""
    return int(_shapes.used_bits32(_input(words)))


def repetitions(words: Words32, low: int, start: int, seen: Words8, found: NDArray[np.int64]) -> None:
    """Add words that `seen` holds already to `found`, [count, index of the first or -1, that word], and mark them.

    Bit i of `seen` stands for the word low + i, other words do not count; `start` is the index of the first word.
    """
    _shapes.repetitions(_input(words), low, start, seen, found)


ROUNDING = 0.5 + 2.0**-16
"""How far, in scales, a source may lie from the value that the canonical encoder gives it: half a scale, and slack.

The reciprocal and the product are rounded to binary32, each by at most 2**-24 of itself; a quotient is below 128, so
both together move it by less than 2**-16 before it is rounded to a code.
"""


def clamp_reach(fmt: GroupedFormat) -> float:
    """How much further under a subnormal scale: its own rounding, half of 2**-24, times the largest code.

    There the clamp may cut much more than half a scale; a normal scale is rounded by 2**-11 of itself at most, and
    what that adds to the largest quotient rounds away.
    """
    return fmt.qmax * 2.0**-25


def rows_apart(
    a: GroupedFormat, a_planes: GroupedPlanes, b: GroupedFormat, b_planes: GroupedPlanes, columns: int
) -> NDArray[np.int64]:
    """Elements of each row further apart than two encodings of one source can be; groups that are illegal are left out."""
    counts = np.zeros(a_planes.scales.size // groups_per_row(a, columns), np.int64)
    if b_planes.scales.size != counts.size * groups_per_row(b, columns):
        raise ValueError(
            f"planes of {b_planes.scales.size} groups do not hold {counts.size} rows of {columns} columns"
        )
    _geometry(a, columns, a_planes)
    _geometry(b, columns, b_planes)
    left, right = (a.code_bits, a.group, _planes(a_planes)), (b.code_bits, b.group, _planes(b_planes))
    _apart.rows_apart(*left, clamp_reach(a), *right, clamp_reach(b), columns, ROUNDING, counts)
    return counts


def statistics_grouped(fmt: GroupedFormat, columns: int, planes: GroupedPlanes, acc: CodeStatistics) -> None:
    """Add the logical lanes and groups of a block to `acc`."""
    rows, width = _geometry(fmt, columns, planes)
    bits, own = fmt.code_bits, _planes(planes)
    counts = _statistics.byte_counts(own[0]) if bits == 8 else count_packed(bits, own[0], own[1])
    acc.histogram[:] += np.roll(counts, counts.size // 2)  # the codes below zero come first
    _statistics.grouped(bits, fmt.group, rows, width, *own, acc.histogram, acc.tallies)


def statistics_row(codes: Words8, scales: Words16, acc: CodeStatistics) -> None:
    """Add FP8 rows, codes [rows, columns] and scales [rows], to `acc`."""
    require_row_scales(codes, scales)
    acc.histogram[:] += _statistics.byte_counts(_input(codes))
    _statistics.rows_of_fp8(_input(codes).reshape(codes.shape), _input(scales), acc.tallies)


def statistics_nvfp4(codes: Words8, scales: Words8, acc: CodeStatistics) -> None:
    """Add NVFP4 rows: packed codes [rows, columns / 2] and scales [rows, columns / 16] in natural order."""
    require_block_scales(codes, scales)
    data = _input(codes)
    acc.histogram[:] += count_packed(4, data, data[:0])
    _statistics.nvfp4(data.view(np.uint64), _input(scales), acc.tallies)


def statistics_direct(words: Words, dtype: str) -> WordStatistics:
    """Counts over words of BF16, F16, F32 (or FP32), F64 or I32."""
    flat, counts = _input(words), np.zeros(6, np.int64)
    counts[4], counts[5] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    if dtype == "I32":
        _statistics.integer_words(flat.view(np.int32), counts)
    else:
        fmt = SOURCE_DTYPES["F32" if dtype == "FP32" else dtype]
        up = 32 - fmt.bits
        if dtype == "F64":
            _statistics.binary64_words(flat, counts)
        else:
            _statistics.float_words(flat, up, fmt.exponent_mask << up, counts)
            counts[4:] >>= up
    return WordStatistics.of_counts(dtype, flat.size, counts)


def _wide(out: Words) -> bool:
    if out.dtype not in (np.uint32, np.uint16):
        raise ValueError(f"the output holds binary32 or BF16 words, not {out.dtype}")
    return out.dtype == np.uint32


def reconstruct_grouped(fmt: GroupedFormat, columns: int, planes: GroupedPlanes, out: Words) -> None:
    """Binary32 words (out u32) or BF16 words (out u16) of the logical lanes, [rows, columns]."""
    rows, width = _geometry(fmt, columns, planes)
    target = writable(out, rows * width)
    _reconstruct.grouped(fmt.code_bits, fmt.group, rows, width, *_planes(planes), _wide(out), target)


def reconstruct_row(codes: Words8, scales: Words16, out: Words) -> None:
    """Binary32 or BF16 words of FP8 rows, [rows, columns]."""
    require_row_scales(codes, scales)
    target = writable(out, codes.size)
    _reconstruct.rows_of_fp8(_input(codes).reshape(codes.shape), _input(scales), _wide(out), target)


@lru_cache(maxsize=64)
def nvfp4_table(divisor: int) -> Words32:
    """Binary32 words [256, 8] of the nonnegative codes under every scale word; NaN for invalid scales."""
    table = np.full((256, 8), 0x7FC00000, np.uint32)
    for scale in range(LARGEST_BLOCK_SCALE + 1):
        table[scale] = [nvfp4_word(code, scale, divisor) for code in range(8)]
    table.flags.writeable = False
    return table


@lru_cache(maxsize=64)
def _nvfp4_table_bf16(divisor: int) -> Words16:
    table = narrow_bf16(nvfp4_table(divisor))
    table.flags.writeable = False
    return table


def reconstruct_nvfp4(codes: Words8, scales: Words8, divisor: int, out: Words) -> None:
    """Binary32 or BF16 words [rows, columns] of packed codes and scales in natural order over one divisor word.

    Raises: ValueError, for an invalid divisor.
    """
    target = writable(out, codes.size * 2)
    require_block_scales(codes, scales)
    wide = _wide(out)
    table = nvfp4_table(int(divisor)) if wide else _nvfp4_table_bf16(int(divisor))
    _reconstruct.nvfp4(_input(codes).view(np.uint64), _input(scales), table, 31 if wide else 15, target)


def error_sums_grouped(
    fmt: GroupedFormat, columns: int, planes: GroupedPlanes, source: Words, dtype: str
) -> ErrorSums:
    """Sums over x, the source [rows, columns] rounded to binary32, and y, what is stored; x must be finite."""
    rows, width = _geometry(fmt, columns, planes)
    if source.size != rows * width:
        raise ValueError(f"{source.size} source words do not go with {rows * width} weights")
    sums = np.zeros(_parity.SUMS, np.float64)
    kind, flat = _tiles.KINDS[dtype], _source(source, dtype)
    with standard_mode():
        _parity.grouped(fmt.code_bits, fmt.group, rows, width, *_planes(planes), kind, flat, sums)
    return ErrorSums(source.size, *map(float, sums))


def parity_grouped(
    fmt: GroupedFormat, columns: int, planes: GroupedPlanes, source: Words, dtype: str
) -> ErrorSums | None:
    """The error sums of a block that is, padding included, the canonical encoding of the source [rows, columns].

    None where it is not, or where the encoder refuses the source.
    """
    rows, width = _geometry(fmt, columns, planes)
    if source.size != rows * width:
        raise ValueError(f"{source.size} source words do not go with {rows * width} weights")
    sums = np.zeros(_parity.SUMS, np.float64)
    kind, flat = _tiles.KINDS[dtype], _source(source, dtype)
    with standard_mode():
        shape = (kind, flat, rows, width, fmt.code_bits, fmt.group, fmt.qmax)
        same = _canonical.grouped(*shape, *_planes(planes), sums)
    return ErrorSums(source.size, *map(float, sums)) if same else None


def error_sums_words(source: Words, stored: Words, dtype: str, stored_dtype: str | None = None) -> ErrorSums:
    """Sums over two arrays of direct words, each rounded to binary32; any two types go together."""
    stored_dtype = stored_dtype or dtype
    x, y = _source(source, dtype), _source(stored, stored_dtype)
    if source.size != stored.size:
        raise ValueError(f"{source.size} words of {dtype} do not go with {stored.size} of {stored_dtype}")
    sums = np.zeros(_parity.SUMS, np.float64)
    with standard_mode():
        _parity.words(source.size, _tiles.KINDS[dtype], x, _tiles.KINDS[stored_dtype], y, sums)
    return ErrorSums(source.size, *map(float, sums))
