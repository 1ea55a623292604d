"""Matrices beyond 2**31 elements of which one word is not zero, the last; and how much of an answer is looked at.

Pages that nobody wrote cost no memory, so a matrix of zeros is nearly free to read; what a kernel writes is not.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import BlockFormat, GroupedFormat
from ninfer_core.kernels.registry import Kernel
from ninfer_core.kernels.values import SOURCE_DTYPES, GroupedPlanes
from ninfer_core.layouts.row_split import BASE_BYTES, groups_per_row, high_bytes
from ninfer_core.selfcheck.drawn import WORDS
from ninfer_core.selfcheck.questions import Answer, Part

ROWS: Final = 257 * 128
COLUMNS: Final = 65_500  # of rows with padding; NVFP4 and flat words take whole tiles
WHOLE: Final = 65_536
ONE_BF16: Final = 0x3F80
ONE32: Final = 0x3F800000
_ONE16, _ONE_E4M3, _ONE_E2M1 = 0x3C00, 0x38, 2


class Stored:
    """A matrix of one weight that is 1, the last logical one, under a scale of 1; everything else is zero."""

    def __init__(self, kernel: Kernel) -> None:
        fmt = kernel.format
        self.columns = WHOLE if isinstance(fmt, BlockFormat) else COLUMNS
        self.format = fmt
        match fmt:
            case GroupedFormat():
                per_row = groups_per_row(fmt, self.columns)
                count = ROWS * per_row
                self.groups = ROWS * -(-self.columns // fmt.group)
                group, lane = divmod(self.columns - 1, fmt.group)
                self.last = count - per_row + group
                self.scales: NDArray[Any] = np.zeros(count, np.uint16)
                self.codes = np.zeros(count * BASE_BYTES, np.uint8)
                self.high = np.zeros(count * high_bytes(fmt), np.uint8)
                place, shift = (lane, 0) if fmt.code_bits == 8 else (lane // 2, lane % 2 * 4)
                self.codes[self.last * BASE_BYTES + place] = 1 << shift
                self.code, self.scale = 1, _ONE16
            case BlockFormat():
                self.groups = ROWS * self.columns // fmt.group
                self.last = self.groups - 1
                self.scales = np.zeros(self.groups, np.uint8)
                self.codes = np.zeros((ROWS, self.columns // 2), np.uint8)
                self.codes[-1, -1] = _ONE_E2M1 << 4
                self.code, self.scale = _ONE_E2M1, _ONE_E4M3
            case _:
                self.groups, self.last = ROWS, ROWS - 1
                self.scales = np.zeros(ROWS, np.uint16)
                self.codes = np.zeros((ROWS, self.columns), np.uint8)
                self.codes[-1, -1] = _ONE_E4M3
                self.code, self.scale = _ONE_E4M3, ONE_BF16
        self.scales[self.last] = self.scale

    @property
    def planes(self) -> GroupedPlanes:
        """Of a grouped format."""
        return GroupedPlanes(self.codes, self.high, self.scales)

    @property
    def block_scales(self) -> NDArray[np.uint8]:
        """Of NVFP4, in natural order; in the swizzled one the last is the last as well."""
        return self.scales.reshape(ROWS, -1)


def ones_last(dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Source words of zeros, but the last is 1."""
    words = np.zeros(shape, WORDS[dtype])
    own = SOURCE_DTYPES[dtype]
    words.reshape(-1)[-1] = own.bias << own.fraction_bits
    return words


def unwritten(size: int, dtype: type[Any]) -> NDArray[Any]:
    """Room for an answer; where its last part is not written, that shows. The rest is left to other questions."""
    room = np.empty(size, dtype)
    room[-(size // 256) :] = 0xA5
    return room


def any_set(words: NDArray[Any]) -> int:
    """1 when some word is not zero; eight bytes at a time, since there are billions."""
    whole = words.size // 8 * 8
    found = bool(words[whole:].any())
    return int(
        found or bool(np.bitwise_or.reduce(np.ascontiguousarray(words[:whole]).view(np.uint64), initial=0))
    )


def numbers(**numbers: float) -> Answer:
    parts = (Part(name.replace("_", " "), np.array(number)) for name, number in numbers.items())
    return Answer("answered", tuple(parts))
