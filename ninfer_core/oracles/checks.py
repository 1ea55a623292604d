"""What is wrong with stored words, as the bits of CHECK_WORDS_V1; logical and physical words one after the other."""

from typing import Any, Final

from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.words import is_block_scale, is_group_scale, is_row_scale

INVALID_SCALE: Final = 1
ZERO_SCALE_OVER_CODE: Final = 2
ILLEGAL_CODE: Final = 4
PADDING: Final = 8


def check_grouped(fmt: GroupedFormat, columns: int, codes: NDArray[Any], scales: NDArray[Any]) -> int:
    """The mask of physical codes [N, padded K] and scale words [N, groups], of which `columns` lanes are logical."""
    found = 0
    for row in range(len(scales)):
        for group, scale in enumerate(map(int, scales[row])):
            first = group * fmt.group
            lanes = [int(code) for code in codes[row, first : first + fmt.group]]
            logical = lanes[: max(0, columns - first)]
            if logical:
                if not is_group_scale(scale):
                    found |= INVALID_SCALE
                if scale == 0 and any(logical):
                    found |= ZERO_SCALE_OVER_CODE
                if any(code not in fmt.codes for code in logical):
                    found |= ILLEGAL_CODE
            if any(lanes[len(logical) :]) or (not logical and scale):
                found |= PADDING
    return found


def check_rows(codes: NDArray[Any], scales: NDArray[Any]) -> int:
    """The mask of FP8 rows: E4M3FN words [N, K] and BF16 words [N]."""
    found = 0
    for row, scale in enumerate(map(int, scales)):
        magnitudes = [int(code) & 0x7F for code in codes[row]]
        if not is_row_scale(scale):
            found |= INVALID_SCALE
        if scale == 0 and any(magnitudes):
            found |= ZERO_SCALE_OVER_CODE
        if 0x7F in magnitudes:
            found |= ILLEGAL_CODE
    return found


def check_block_scales(scales: NDArray[Any]) -> int:
    """The mask of NVFP4 scale words; every code word is legal, and a zero scale may stand over any code."""
    return 0 if all(is_block_scale(int(scale)) for scale in scales.reshape(-1)) else INVALID_SCALE
