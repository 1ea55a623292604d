"""One question beyond 2**31 elements: an index of 32 bits would miss the last row, the only one that is not zero.

Pages that nobody wrote cost no memory, so a matrix of zeros is nearly free to read; what a kernel writes is not.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import BF16, I32, BlockFormat, DirectFormat, GroupedFormat
from ninfer_core.kernels.registry import Kernel
from ninfer_core.kernels.values import SOURCE_DTYPES, CodeStatistics, EncodeFault, ErrorSums, GroupedPlanes
from ninfer_core.layouts.row_split import BASE_BYTES, groups_per_row, high_bytes, unpack
from ninfer_core.oracles.encoding import encode_grouped, encode_rows
from ninfer_core.oracles.parity import Sums
from ninfer_core.selfcheck.drawn import WORDS
from ninfer_core.selfcheck.memory import require_memory
from ninfer_core.selfcheck.questions import Answer, Part, Question, asked

ROWS: Final = 257 * 128
COLUMNS: Final = 65_500  # of rows with padding; NVFP4 and flat words take whole tiles
WHOLE: Final = 65_536
_NAME: Final = "beyond 2**31 elements"
_ONE16, _ONE_BF16, _ONE32, _ONE_E4M3 = 0x3C00, 0x3F80, 0x3F800000, 0x38
_ONE_E2M1: Final = 2
Ask = Callable[[Any], Answer]


def huge_question(kernel: Kernel) -> Question:
    """The question for a kernel of the whitelist. Raises: TooLittleMemory, MemoryError."""
    match kernel.operation, kernel.format:
        case "encode", GroupedFormat() as fmt:
            expected, ask = _encode(fmt, str(kernel.dtype))
        case "encode", _:
            expected, ask = _encode_rows(str(kernel.dtype))
        case "statistics", DirectFormat() as direct:
            expected, ask = _count_words(direct)
        case "parity", DirectFormat() as direct:
            expected, ask = _sum_words(direct, str(kernel.dtype))
        case operation, _:
            expected, ask = _STORED[operation](kernel, _Stored(kernel))
    return asked(_NAME, expected, ask)


class _Stored:
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
                self.code, self.scale = _ONE_E4M3, _ONE_BF16
        self.scales[self.last] = self.scale

    @property
    def planes(self) -> GroupedPlanes:
        """Of a grouped format."""
        return GroupedPlanes(self.codes, self.high, self.scales)

    @property
    def block_scales(self) -> NDArray[np.uint8]:
        """Of NVFP4, in natural order; in the swizzled one the last is the last as well."""
        return self.scales.reshape(ROWS, -1)


def _check(kernel: Kernel, stored: _Stored) -> tuple[Answer, Ask]:
    """The scale of the one weight is broken: zero over a code, or, where that is legal, negative."""
    blocks = isinstance(kernel.format, BlockFormat)
    stored.scales[stored.last] = 0x80 if blocks else 0

    def ask(processor: Any) -> Answer:
        match stored.format:
            case GroupedFormat() as fmt:
                mask = processor.scan_grouped(fmt, stored.columns, stored.planes)
            case BlockFormat():
                mask = processor.scan_block_scales(stored.block_scales)
            case _:
                mask = processor.scan_row(stored.codes, stored.scales)
        return _answer(mask=mask)

    return _answer(mask=1 if blocks else 2), ask


def _count(kernel: Kernel, stored: _Stored) -> tuple[Answer, Ask]:
    def ask(processor: Any) -> Answer:
        if isinstance(stored.format, DirectFormat):
            raise TypeError(f"{stored.format.name} has no codes")
        acc = CodeStatistics.empty(stored.format)
        match stored.format:
            case GroupedFormat() as fmt:
                processor.statistics_grouped(fmt, stored.columns, stored.planes, acc)
            case BlockFormat():
                processor.statistics_nvfp4(stored.codes, stored.block_scales, acc)
            case _:
                processor.statistics_row(stored.codes, stored.scales, acc)
        zeros, ones = (int(acc.histogram[code - acc.first_code]) for code in (0, stored.code))
        tallies = (acc.groups, acc.zero_scales, acc.zero_groups, acc.smallest_scale, acc.largest_scale)
        return _counts(zeros, ones, *tallies)

    most = stored.groups - 1
    weights = ROWS * stored.columns
    return _counts(weights - 1, 1, stored.groups, most, most, stored.scale, stored.scale), ask


def _counts(
    zeros: int, ones: int, groups: int, zero_scales: int, zero_groups: int, *extremes: int | None
) -> Answer:
    smallest, largest = (word or 0 for word in extremes)
    return _answer(
        zero_codes=zeros,
        codes_of_one=ones,
        groups=groups,
        zero_scales=zero_scales,
        zero_groups=zero_groups,
        smallest_scale=smallest,
        largest_scale=largest,
    )


def _reconstruct(kernel: Kernel, stored: _Stored) -> tuple[Answer, Ask]:
    wide = kernel.dtype == "FP32"
    require_memory(ROWS * stored.columns * (4 if wide else 2))

    def ask(processor: Any) -> Answer:
        out = np.empty((ROWS, stored.columns), np.uint32 if wide else np.uint16)
        match stored.format:
            case GroupedFormat() as fmt:
                processor.reconstruct_grouped(fmt, stored.columns, stored.planes, out)
            case BlockFormat():
                processor.reconstruct_nvfp4(stored.codes, stored.block_scales, _ONE32, out)
            case _:
                processor.reconstruct_row(stored.codes, stored.scales, out)
        return _answer(last_weight=int(out[-1, -1]), any_other=_any(out.reshape(-1)[:-1]))

    return _answer(last_weight=_ONE32 if wide else _ONE_BF16, any_other=0), ask


def _multiply(kernel: Kernel, stored: _Stored) -> tuple[Answer, Ask]:
    activation = np.zeros(stored.columns, np.uint16)
    activation[-1] = _ONE_BF16

    def ask(processor: Any) -> Answer:
        out = np.empty(ROWS, np.uint16)
        match stored.format:
            case GroupedFormat() as fmt:
                processor.matvec_grouped(fmt, stored.columns, stored.planes, activation, out)
            case BlockFormat():
                codes = stored.codes.reshape(-1)
                processor.matvec_nvfp4(codes, stored.scales, _ONE32, activation, out)
            case _:
                processor.matvec_row(stored.codes, stored.scales, activation, out)
        return _answer(last_output=int(out[-1]), any_other=_any(out[:-1] & 0x7FFF))

    return _answer(last_output=_ONE_BF16, any_other=0), ask


def _sum_grouped(kernel: Kernel, stored: _Stored) -> tuple[Answer, Ask]:
    if not isinstance(kernel.format, GroupedFormat):
        raise TypeError(f"{kernel.name} has no sums of its own")
    fmt, dtype = kernel.format, str(kernel.dtype)
    source = _ones_last(dtype, (ROWS, stored.columns))
    stored.scales[stored.last] = 0x4000  # a scale of 2: the weight is 2, and the source 1

    def ask(processor: Any) -> Answer:
        return _sums(processor.error_sums_grouped(fmt, stored.columns, stored.planes, source, dtype))

    return _sums(Sums(1.0, 1.0, 4.0, 1.0)), ask


def _sum_words(fmt: DirectFormat, dtype: str) -> tuple[Answer, Ask]:
    stored_dtype = "BF16" if fmt is BF16 else "F32"
    source, stored = (_ones_last(one, (ROWS * WHOLE,)) for one in (dtype, stored_dtype))
    stored[-1] += 1 << (7 if fmt is BF16 else 23)  # 2

    def ask(processor: Any) -> Answer:
        return _sums(processor.error_sums_words(source, stored, dtype, stored_dtype))

    return _sums(Sums(1.0, 1.0, 4.0, 1.0)), ask


def _sums(sums: Sums | ErrorSums) -> Answer:
    return _answer(
        squared_error=sums.squared_error,
        source_squares=sums.source_squares,
        value_squares=sums.value_squares,
        largest_error=sums.largest_error,
    )


def _count_words(fmt: DirectFormat) -> tuple[Answer, Ask]:
    words = np.zeros(ROWS * WHOLE, np.uint16 if fmt is BF16 else np.uint32)
    one = 1 if fmt is I32 else _ONE_BF16 if fmt is BF16 else _ONE32
    words[-1] = one

    def ask(processor: Any) -> Answer:
        counts = processor.statistics_direct(words, fmt.name)
        return _answer(count=counts.count, zeros=counts.positive_zeros, largest=counts.largest)

    return _answer(count=words.size, zeros=words.size - 1, largest=one), ask


def _encode(fmt: GroupedFormat, dtype: str) -> tuple[Answer, Ask]:
    source = _ones_last(dtype, (ROWS, COLUMNS))
    per_row = groups_per_row(fmt, COLUMNS)
    groups = ROWS * per_row
    group = (COLUMNS - 1) // fmt.group
    require_memory(groups * (BASE_BYTES + high_bytes(fmt) + 2))
    one = encode_grouped(fmt, np.array([[_ONE32]], np.uint32))

    def ask(processor: Any) -> Answer:
        out = GroupedPlanes.empty(fmt, ROWS, COLUMNS)
        result = processor.encode(fmt, source, dtype, out)
        if isinstance(result, EncodeFault):
            return Answer(f"refused: {result.kind} in row {result.row}")
        end = out.part(fmt, groups - per_row, groups)
        row = unpack(fmt, COLUMNS, end.base, end.high, end.scales)
        before = out.part(fmt, 0, groups - per_row)
        others = (
            _any(before.scales) | _any(before.base) | _any(before.high) | _any(row.codes[0, : COLUMNS - 1])
        )
        return _answer(
            last_scale=int(row.scales[0, group]), last_code=int(row.codes[0, COLUMNS - 1]), any_other=others
        )

    return _answer(last_scale=int(one.scales[0, 0]), last_code=int(one.codes[0, 0]), any_other=0), ask


def _encode_rows(dtype: str) -> tuple[Answer, Ask]:
    source = _ones_last(dtype, (ROWS, COLUMNS))
    require_memory(source.size)
    one = encode_rows(np.array([[_ONE32]], np.uint32))

    def ask(processor: Any) -> Answer:
        codes, scales = np.empty((ROWS, COLUMNS), np.uint8), np.empty(ROWS, np.uint16)
        result = processor.encode_rows(
            source, dtype, processor.largest_magnitudes(source, dtype), codes, scales
        )
        if isinstance(result, EncodeFault):
            return Answer(f"refused: {result.kind} in row {result.row}")
        others = _any(codes.reshape(-1)[:-1]) | _any(scales[:-1])
        return _answer(last_scale=int(scales[-1]), last_code=int(codes[-1, -1]), any_other=others)

    return _answer(last_scale=int(one.scales[0]), last_code=int(one.codes[0, 0]), any_other=0), ask


def _ones_last(dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Source words of zeros, but the last is 1."""
    words = np.zeros(shape, WORDS[dtype])
    own = SOURCE_DTYPES[dtype]
    words.reshape(-1)[-1] = own.bias << own.fraction_bits
    return words


def _any(words: NDArray[Any]) -> int:
    """1 when some word is not zero; eight bytes at a time, since there are billions."""
    whole = words.size // 8 * 8
    found = bool(words[whole:].any())
    return int(
        found or bool(np.bitwise_or.reduce(np.ascontiguousarray(words[:whole]).view(np.uint64), initial=0))
    )


def _answer(**numbers: float) -> Answer:
    parts = (Part(name.replace("_", " "), np.array(number)) for name, number in numbers.items())
    return Answer("answered", tuple(parts))


_STORED: Final[dict[str, Callable[[Kernel, _Stored], tuple[Answer, Ask]]]] = {
    "check": _check,
    "statistics": _count,
    "reconstruct": _reconstruct,
    "parity": _sum_grouped,
    "matvec": _multiply,
}
