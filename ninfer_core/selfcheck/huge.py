"""One question beyond 2**31 elements: an index of 32 bits would miss the last row, the only one that is not zero.

Pages that nobody wrote cost no memory, so a matrix of zeros is nearly free to read; what a kernel writes is not.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ninfer_core.formats import BF16, I32, BlockFormat, DirectFormat, GroupedFormat
from ninfer_core.kernels.registry import Kernel
from ninfer_core.kernels.values import CodeStatistics, EncodeFault, ErrorSums, GroupedPlanes
from ninfer_core.layouts.row_split import BASE_BYTES, groups_per_row, high_bytes, unpack
from ninfer_core.oracles.checks import INVALID_SCALE, ZERO_SCALE_OVER_CODE
from ninfer_core.oracles.encoding import encode_grouped, encode_rows
from ninfer_core.oracles.parity import Sums
from ninfer_core.selfcheck.memory import require_memory
from ninfer_core.selfcheck.questions import Answer, Question, asked
from ninfer_core.selfcheck.sparse import (
    COLUMNS,
    ONE32,
    ONE_BF16,
    ROWS,
    WHOLE,
    Stored,
    any_set,
    numbers,
    ones_last,
    unwritten,
)

_NAME: Final = "beyond 2**31 elements"
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
            expected, ask = _STORED[operation](kernel, Stored(kernel))
    return asked(_NAME, expected, ask)


def _check(kernel: Kernel, stored: Stored) -> tuple[Answer, Ask]:
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
        return numbers(mask=mask)

    return numbers(mask=INVALID_SCALE if blocks else ZERO_SCALE_OVER_CODE), ask


def _count(kernel: Kernel, stored: Stored) -> tuple[Answer, Ask]:
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
    return numbers(
        zero_codes=zeros,
        codes_of_one=ones,
        groups=groups,
        zero_scales=zero_scales,
        zero_groups=zero_groups,
        smallest_scale=smallest,
        largest_scale=largest,
    )


def _reconstruct(kernel: Kernel, stored: Stored) -> tuple[Answer, Ask]:
    wide = kernel.dtype == "FP32"
    require_memory(ROWS * stored.columns * (4 if wide else 2))

    def ask(processor: Any) -> Answer:
        out = unwritten(ROWS * stored.columns, np.uint32 if wide else np.uint16).reshape(ROWS, -1)
        match stored.format:
            case GroupedFormat() as fmt:
                processor.reconstruct_grouped(fmt, stored.columns, stored.planes, out)
            case BlockFormat():
                processor.reconstruct_nvfp4(stored.codes, stored.block_scales, ONE32, out)
            case _:
                processor.reconstruct_row(stored.codes, stored.scales, out)
        return numbers(last_weight=int(out[-1, -1]), any_other=any_set(out.reshape(-1)[:-1]))

    return numbers(last_weight=ONE32 if wide else ONE_BF16, any_other=0), ask


def _multiply(kernel: Kernel, stored: Stored) -> tuple[Answer, Ask]:
    activation = np.zeros(stored.columns, np.uint16)
    activation[-1] = ONE_BF16

    def ask(processor: Any) -> Answer:
        out = unwritten(ROWS, np.uint16)
        match stored.format:
            case GroupedFormat() as fmt:
                processor.matvec_grouped(fmt, stored.columns, stored.planes, activation, out)
            case BlockFormat():
                codes = stored.codes.reshape(-1)
                processor.matvec_nvfp4(codes, stored.scales, ONE32, activation, out)
            case _:
                processor.matvec_row(stored.codes, stored.scales, activation, out)
        return numbers(last_output=int(out[-1]), any_other=any_set(out[:-1] & 0x7FFF))

    return numbers(last_output=ONE_BF16, any_other=0), ask


def _sum_grouped(kernel: Kernel, stored: Stored) -> tuple[Answer, Ask]:
    if not isinstance(kernel.format, GroupedFormat):
        raise TypeError(f"{kernel.name} has no sums of its own")
    fmt, dtype = kernel.format, str(kernel.dtype)
    source = ones_last(dtype, (ROWS, stored.columns))
    stored.scales[stored.last] = 0x4000  # a scale of 2: the weight is 2, and the source 1

    def ask(processor: Any) -> Answer:
        return _sums(processor.error_sums_grouped(fmt, stored.columns, stored.planes, source, dtype))

    return _sums(Sums(1.0, 1.0, 4.0, 1.0)), ask


def _sum_words(fmt: DirectFormat, dtype: str) -> tuple[Answer, Ask]:
    stored_dtype = "BF16" if fmt is BF16 else "F32"
    source, stored = (ones_last(one, (ROWS * WHOLE,)) for one in (dtype, stored_dtype))
    stored[-1] += 1 << (7 if fmt is BF16 else 23)  # 2

    def ask(processor: Any) -> Answer:
        return _sums(processor.error_sums_words(source, stored, dtype, stored_dtype))

    return _sums(Sums(1.0, 1.0, 4.0, 1.0)), ask


def _sums(sums: Sums | ErrorSums) -> Answer:
    return numbers(
        squared_error=sums.squared_error,
        source_squares=sums.source_squares,
        value_squares=sums.value_squares,
        largest_error=sums.largest_error,
    )


def _count_words(fmt: DirectFormat) -> tuple[Answer, Ask]:
    words = np.zeros(ROWS * WHOLE, np.uint16 if fmt is BF16 else np.uint32)
    one = 1 if fmt is I32 else ONE_BF16 if fmt is BF16 else ONE32
    words[-1] = one

    def ask(processor: Any) -> Answer:
        counts = processor.statistics_direct(words, fmt.name)
        return numbers(count=counts.count, zeros=counts.positive_zeros, largest=counts.largest)

    return numbers(count=words.size, zeros=words.size - 1, largest=one), ask


def _encode(fmt: GroupedFormat, dtype: str) -> tuple[Answer, Ask]:
    source = ones_last(dtype, (ROWS, COLUMNS))
    per_row = groups_per_row(fmt, COLUMNS)
    groups = ROWS * per_row
    group = (COLUMNS - 1) // fmt.group
    require_memory(groups * (BASE_BYTES + high_bytes(fmt) + 2))
    one = encode_grouped(fmt, np.array([[ONE32]], np.uint32))

    def ask(processor: Any) -> Answer:
        sizes = (BASE_BYTES, high_bytes(fmt))
        base, high = (unwritten(groups * size, np.uint8) for size in sizes)
        out = GroupedPlanes(base, high, unwritten(groups, np.uint16))
        result = processor.encode(fmt, source, dtype, out)
        if isinstance(result, EncodeFault):
            return Answer(f"refused: {result.kind} in row {result.row}")
        end = out.part(fmt, groups - per_row, groups)
        row = unpack(fmt, COLUMNS, end.base, end.high, end.scales)
        before = out.part(fmt, 0, groups - per_row)
        others = (
            any_set(before.scales)
            | any_set(before.base)
            | any_set(before.high)
            | any_set(row.codes[0, : COLUMNS - 1])
        )
        return numbers(
            last_scale=int(row.scales[0, group]), last_code=int(row.codes[0, COLUMNS - 1]), any_other=others
        )

    return numbers(last_scale=int(one.scales[0, 0]), last_code=int(one.codes[0, 0]), any_other=0), ask


def _encode_rows(dtype: str) -> tuple[Answer, Ask]:
    source = ones_last(dtype, (ROWS, COLUMNS))
    require_memory(source.size)
    one = encode_rows(np.array([[ONE32]], np.uint32))

    def ask(processor: Any) -> Answer:
        codes = unwritten(ROWS * COLUMNS, np.uint8).reshape(ROWS, -1)
        scales = unwritten(ROWS, np.uint16)
        result = processor.encode_rows(
            source, dtype, processor.largest_magnitudes(source, dtype), codes, scales
        )
        if isinstance(result, EncodeFault):
            return Answer(f"refused: {result.kind} in row {result.row}")
        others = any_set(codes.reshape(-1)[:-1]) | any_set(scales[:-1])
        return numbers(last_scale=int(scales[-1]), last_code=int(codes[-1, -1]), any_other=others)

    return numbers(last_scale=int(one.scales[0]), last_code=int(one.codes[0, 0]), any_other=0), ask


_STORED: Final[dict[str, Callable[[Kernel, Stored], tuple[Answer, Ask]]]] = {
    "check": _check,
    "statistics": _count,
    "reconstruct": _reconstruct,
    "parity": _sum_grouped,
    "matvec": _multiply,
}
