"""What statistics and error sums are asked: odd shapes, every word of small types, drawn words, two blocks in one."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from ninfer_core.formats import BF16, I32, BlockFormat, DirectFormat, GroupedFormat, RowFormat
from ninfer_core.kernels.registry import Kernel
from ninfer_core.kernels.values import CodeStatistics
from ninfer_core.layouts.block_scale import unpack_codes
from ninfer_core.layouts.row_split import unpack
from ninfer_core.oracles.parity import sum_grouped, sum_words
from ninfer_core.oracles.statistics import (
    CodeCounts,
    count_floats,
    count_grouped,
    count_integers,
    count_nvfp4,
    count_rows,
)
from ninfer_core.selfcheck.answers import code_answer, code_histogram, sums_answer, word_answer
from ninfer_core.selfcheck.canonical import canonical_questions
from ninfer_core.selfcheck.drawn import Random, Words, source_rows, widened
from ninfer_core.selfcheck.payloads import Block, GroupedBlock, RowBlock, TileBlock, stored_bytes
from ninfer_core.selfcheck.questions import ODD_SHAPES, Answer, Depth, Question, asked
from ninfer_core.selfcheck.reconstruction import drawn, drawn_block, drawn_shapes, shape_of
from ninfer_core.words import (
    BFLOAT16,
    BINARY32,
    expand_bf16,
    expand_binary16,
    values_of_binary32,
)

_SPECIAL32: Final = (0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF)
_ONE_BY_ONE: Final = 200_000  # weights at most: what the oracles count and add one after the other


def statistics_questions(kernel: Kernel, random: Random, depth: Depth) -> Iterator[Question]:
    """Every question to a kernel of statistics; the last one is the large one."""
    fmt = kernel.format
    weights = min(depth.weights, _ONE_BY_ONE)
    if isinstance(fmt, DirectFormat):
        for count in (1, 31, 129, 1_000):
            yield _direct(fmt, f"{count} words", _direct_words(fmt, random, count))
        yield _direct(fmt, "no finite word", _direct_words(fmt, random, 0))
        if fmt is BF16 and depth.every_word:
            yield _direct(fmt, "every word", np.arange(1 << 16, dtype=np.uint16))
        yield _direct(fmt, "drawn", _direct_words(fmt, random, weights))
        return
    blocks = list(drawn_shapes(fmt, random))
    for block in blocks:
        yield _codes(fmt, f"shape {'x'.join(map(str, shape_of(block)))}", [block])
    yield _codes(fmt, "two blocks in one", blocks[-2:])
    yield _codes(fmt, "drawn", [drawn_block(fmt, random, weights)])


def _direct_words(fmt: DirectFormat, random: Random, count: int) -> Words:
    """Words of every kind; of no kind that is finite when `count` is 0, where all of them are numbers otherwise."""
    if count == 0 and fmt is not I32:
        words = np.array([0x7F800000, 0xFF800000, 0x7FC00000, 0xFF800001 | 1 << 16], np.uint32)
    else:
        words = random.integers(0, 1 << 32, count, dtype=np.uint32)
        special = random.random(count) < 0.3
        signs = random.integers(0, 2, count, dtype=np.uint32) << np.uint32(31)
        words[special] = (random.choice(np.array(_SPECIAL32, np.uint32), count) | signs)[special]
    return (words >> 16).astype(np.uint16) if fmt is BF16 else words


def _direct(fmt: DirectFormat, name: str, words: Words) -> Question:
    every = words.tolist()
    if fmt is I32:
        counts = count_integers(every)
    else:
        counts = count_floats(BFLOAT16 if fmt is BF16 else BINARY32, every)

    def ask(processor: Any) -> Answer:
        return word_answer(processor.statistics_direct(words, fmt.name))

    return asked(name, word_answer(counts), ask, words.nbytes)


def _codes(fmt: GroupedFormat | BlockFormat | RowFormat, name: str, blocks: list[Block]) -> Question:
    def ask(processor: Any) -> Answer:
        acc = CodeStatistics.empty(fmt)
        for block in blocks:
            match block:
                case GroupedBlock():
                    processor.statistics_grouped(block.format, block.columns, block.planes, acc)
                case RowBlock():
                    processor.statistics_row(block.codes, block.scales, acc)
                case TileBlock():
                    codes = block.packed.reshape(block.rows, block.columns // 2)
                    processor.statistics_nvfp4(codes, block.scales, acc)
        return code_answer(acc.histogram, acc)

    counts = [_count(block) for block in blocks]
    return asked(
        name, code_answer(code_histogram(fmt, counts), _added(counts)), ask, sum(map(stored_bytes, blocks))
    )


def _count(block: Block) -> CodeCounts:
    match block:
        case GroupedBlock():
            planes = block.planes
            words = unpack(block.format, block.columns, planes.base, planes.high, planes.scales)
            return count_grouped(block.format, words.codes[:, : block.columns], words.scales)
        case RowBlock():
            return count_rows(block.codes, block.scales)
        case TileBlock():
            return count_nvfp4(unpack_codes(block.packed, block.columns), block.scales)


def _added(parts: list[CodeCounts]) -> CodeCounts:
    """The counts of several blocks, but for the codes."""
    smallest = [part.smallest_scale for part in parts if part.smallest_scale is not None]
    largest = [part.largest_scale for part in parts if part.largest_scale is not None]
    return CodeCounts(
        {},
        sum(part.groups for part in parts),
        sum(part.zero_scales for part in parts),
        sum(part.zero_groups for part in parts),
        min(smallest, default=None),
        max(largest, default=None),
    )


def parity_questions(kernel: Kernel, random: Random, depth: Depth) -> Iterator[Question]:
    """Every question to a kernel of error sums; the last one is the large one."""
    fmt = kernel.format
    large = (max(1, min(depth.weights, _ONE_BY_ONE) // 5_000), 5_000)  # a row is more than one tile
    if isinstance(fmt, GroupedFormat):
        for rows, columns in ODD_SHAPES:
            yield _grouped_sums(kernel, fmt, f"shape {rows}x{columns}", random, rows, columns)
        yield from canonical_questions(fmt, str(kernel.dtype), random)
        yield _grouped_sums(kernel, fmt, "drawn", random, *large)
        return
    for rows, columns in ODD_SHAPES:
        yield _word_sums(kernel, f"{rows * columns} words", random, rows * columns)
    yield _word_sums(kernel, "drawn", random, large[0] * large[1])


def _grouped_sums(
    kernel: Kernel, fmt: GroupedFormat, name: str, random: Random, rows: int, columns: int
) -> Question:
    dtype = str(kernel.dtype)
    source = source_rows(random, fmt, dtype, rows, columns)
    block = drawn(fmt, random, rows, columns)
    if not isinstance(block, GroupedBlock):
        raise TypeError(f"{fmt.name} is grouped")
    planes = block.planes
    words = unpack(fmt, columns, planes.base, planes.high, planes.scales)
    scales = values_of_binary32(expand_binary16(words.scales))
    x = values_of_binary32(widened(dtype, source))
    sums = sum_grouped(fmt.group, x.tolist(), words.codes[:, :columns].tolist(), scales.tolist())

    def ask(processor: Any) -> Answer:
        return sums_answer(processor.error_sums_grouped(fmt, columns, planes, source, dtype))

    return asked(name, sums_answer(sums), ask, source.nbytes)


def _word_sums(kernel: Kernel, name: str, random: Random, count: int) -> Question:
    dtype, stored_dtype = str(kernel.dtype), "BF16" if kernel.format is BF16 else "F32"
    x, y = _numbers(random, dtype, count), _numbers(random, stored_dtype, count)
    left, right = (values_of_binary32(widened(t, w)) for t, w in ((dtype, x), (stored_dtype, y)))
    sums = sum_words([left.tolist()], [right.tolist()])

    def ask(processor: Any) -> Answer:
        return sums_answer(processor.error_sums_words(x, y, dtype, stored_dtype))

    return asked(name, sums_answer(sums), ask, x.nbytes)


def _numbers(random: Random, dtype: str, count: int) -> Words:
    """Words of many magnitudes that are finite in binary32, and whose sums of squares are as well."""
    narrow: Words = random.integers(0, 1 << 16, count).astype(np.uint16)
    narrow &= np.uint16(0xBBFF if dtype == "F16" else 0xBFFF)
    if dtype in ("F16", "BF16"):
        return narrow
    wide: Words = expand_bf16(narrow) | random.integers(0, 1 << 16, count, np.uint32)
    if dtype == "F64":
        # Bits below those of binary32: they are rounded away.
        wide = values_of_binary32(wide).view(np.uint64) | random.integers(0, 1 << 29, count, np.uint64)
    return wide
