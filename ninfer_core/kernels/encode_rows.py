"""The row encoder MAXABS_BF16S_RECIP_E4M3FN_RNE_V1, compiled.

Why a flush-to-zero mode cannot alter a result: scales and reciprocals are formed by integers, a reciprocal is always a
normal number, and so is every product that matters under a scale of at least 2**-116: a subnormal source or product is
then below half of the smallest code, whose sign comes from the source word. Under a smaller scale, products are formed
by integers too.
"""

import numpy as np

from ninfer_core.kernels.cache import inline, kernel
from ninfer_core.kernels.tiles import (
    LANES,
    LINE,
    Array,
    bf16_of_binary32,
    e4m3fn_of_binary32,
    load,
    product32,
    reciprocal_of_row_scale,
    row_scale32_of,
    scratch,
)

LARGEST = 0x43E00000  # 448
LARGEST_REFUSED_SCALE = 0x0020  # 2**-128
SMALLEST_SAFE_SCALE = (127 - 116) << 7  # BF16 word of 2**-116


@inline
def codes_of_normal(words: Array, inverse: int, codes: Array) -> int:
    """Codes of a tile under a scale of at least 2**-116; the number of lanes beyond 448."""
    factor_word = np.empty(1, np.uint32)
    factor_word[0] = np.uint32(inverse)
    factor = factor_word.view(np.float32)[0]
    magnitudes, top = np.empty(LANES, np.uint32), np.uint32(LARGEST)
    own, products = magnitudes[: codes.size], magnitudes[: codes.size].view(np.float32)
    for i in range(own.size):
        own[i] = words[i] & np.uint32(0x7FFFFFFF)
    for i in range(products.size):
        products[i] = products[i] * factor
    clamped = np.uint32(0)
    for i in range(own.size):
        clamped += np.uint32(own[i] > top)
        own[i] = min(own[i], top)
    for i in range(own.size):
        sign = np.uint32((words[i] >> np.uint32(24)) & np.uint32(0x80))
        codes[i] = np.uint8(np.uint32(e4m3fn_of_binary32(np.int32(own[i]))) | sign)
    return int(clamped)


@inline
def codes_of_tiny(words: Array, inverse: int, codes: Array) -> int:
    """The same under a smaller scale: lanes may be subnormal and matter."""
    clamped = 0
    for i in range(codes.size):
        magnitude = product32(np.int64(words[i] & np.uint32(0x7FFFFFFF)), np.int64(inverse))
        clamped += magnitude > LARGEST
        sign = np.int64((words[i] >> np.uint32(24)) & np.uint32(0x80))
        codes[i] = np.uint8(e4m3fn_of_binary32(min(magnitude, LARGEST)) | sign)
    return clamped


@kernel
def largest_magnitudes(kind: int, source: Array, rows: int, columns: int, largest: Array) -> None:
    """Raise `largest` [rows] to the largest binary32 magnitude word of each row; NaN is above infinity."""
    words, mask = scratch(4 * LANES).view(np.uint32), np.uint32(0x7FFFFFFF)
    for row in range(rows):
        top = np.uint32(largest[row])
        for first in range(0, columns, LANES):
            lanes = min(LANES, columns - first)
            load(kind, source, row * columns + first, lanes, (lanes + LINE - 1) // LINE, words)
            part = words[:lanes]
            for i in range(part.size):
                top = np.uint32(max(top, np.uint32(part[i] & mask)))
        largest[row] = top


@kernel
def encode_rows(
    kind: int,
    source: Array,
    rows: int,
    columns: int,
    largest: Array,
    codes: Array,
    scales: Array,
    counts: Array,
) -> int:
    """Encode source words [rows, columns], as bytes; `largest` holds each row's magnitude, over lanes not given here too.

    Adds the lanes beyond 448 to counts[0]. Returns the first row that must be refused, or -1.
    """
    words = scratch(4 * LANES).view(np.uint32)
    for row in range(rows):
        amax = np.int64(largest[row])
        out = codes[row * columns : (row + 1) * columns]
        if amax == 0:
            scales[row] = np.uint16(0)
            for i in range(out.size):
                out[i] = np.uint8(0)
            continue
        if amax >= 0x7F800000:
            return row
        scale = np.int64(bf16_of_binary32(np.int64(row_scale32_of(amax))))
        if scale <= LARGEST_REFUSED_SCALE:
            return row
        scales[row] = np.uint16(scale)
        inverse = np.int64(reciprocal_of_row_scale(scale))
        for first in range(0, columns, LANES):
            lanes = min(LANES, columns - first)
            load(kind, source, row * columns + first, lanes, (lanes + LINE - 1) // LINE, words)
            if scale >= SMALLEST_SAFE_SCALE:
                counts[0] += codes_of_normal(words, inverse, out[first : first + lanes])
            else:
                counts[0] += codes_of_tiny(words, inverse, out[first : first + lanes])
    return -1
