"""What statistics and error sums are asked: odd shapes, every word of small types, drawn words, two blocks in one."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import BF16, I32, BlockFormat, DirectFormat, GroupedFormat, RowFormat
from ninfer_core.kernels.registry import Kernel
from ninfer_core.kernels.values import CodeStatistics, ErrorSums, WordStatistics
from ninfer_core.layouts.block_scale import unpack_codes
from ninfer_core.layouts.row_split import unpack
from ninfer_core.oracles.parity import Sums, sum_grouped, sum_words
from ninfer_core.oracles.statistics import (
    CodeCounts,
    WordCounts,
    count_floats,
    count_grouped,
    count_integers,
    count_nvfp4,
    count_rows,
)
from ninfer_core.selfcheck.drawn import WORDS, Random, Words, source_rows, widened
from ninfer_core.selfcheck.payloads import Block, GroupedBlock, RowBlock, TileBlock, stored_bytes
from ninfer_core.selfcheck.questions import ODD_SHAPES, Answer, Depth, Part, Question, asked
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
        return _word_answer(processor.statistics_direct(words, fmt.name))

    return asked(name, _word_answer(counts), ask, words.nbytes)


def _word_answer(counts: WordCounts | WordStatistics) -> Answer:
    names = ("positive_zeros", "negative_zeros", "nans", "infinities")
    parts = [Part(name.replace("_", " "), np.array(getattr(counts, name))) for name in ("count", *names)]
    return Answer("counted", (*parts, *_extremes("word", counts.smallest, counts.largest)))


def _extremes(what: str, smallest: int | None, largest: int | None) -> tuple[Part, ...]:
    """The extremes; -1 where there are none."""
    return tuple(
        Part(f"{which} {what}", np.array(-1 if word is None else word, np.int64))
        for which, word in (("smallest", smallest), ("largest", largest))
    )


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
        return _code_answer(acc.histogram, acc)

    empty = CodeStatistics.empty(fmt)
    histogram, expected = np.zeros_like(empty.histogram), []
    for block in blocks:
        counts = _count(block)
        expected.append(counts)
        for code, times in counts.codes.items():
            histogram[code - empty.first_code] += times
    return asked(name, _code_answer(histogram, _added(expected)), ask, sum(map(stored_bytes, blocks)))


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


def _code_answer(histogram: NDArray[np.int64], counts: CodeCounts | CodeStatistics) -> Answer:
    names = ("groups", "zero_scales", "zero_groups")
    parts = [Part(name.replace("_", " "), np.array(getattr(counts, name))) for name in names]
    extremes = _extremes("scale", counts.smallest_scale, counts.largest_scale)
    return Answer("counted", (Part("histogram", histogram.copy(), ("place",)), *parts, *extremes))


def parity_questions(kernel: Kernel, random: Random, depth: Depth) -> Iterator[Question]:
    """Every question to a kernel of error sums; the last one is the large one."""
    large = (max(2, min(depth.weights, _ONE_BY_ONE) // 5_000), 5_000)  # a row is more than one tile
    for rows, columns in (*ODD_SHAPES, large):
        name = "drawn" if (rows, columns) == large else f"shape {rows}x{columns}"
        if isinstance(kernel.format, GroupedFormat):
            yield _grouped_sums(kernel, kernel.format, name, random, rows, columns)
        else:
            yield _word_sums(kernel, name, random, rows * columns)


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
        return _sums(processor.error_sums_grouped(fmt, columns, planes, source, dtype))

    return asked(name, _sums(sums), ask, source.nbytes)


def _word_sums(kernel: Kernel, name: str, random: Random, count: int) -> Question:
    dtype, stored_dtype = str(kernel.dtype), "BF16" if kernel.format is BF16 else "F32"
    x, y = _numbers(random, dtype, count), _numbers(random, stored_dtype, count)
    left, right = (values_of_binary32(widened(t, w)) for t, w in ((dtype, x), (stored_dtype, y)))
    sums = sum_words([left.tolist()], [right.tolist()])

    def ask(processor: Any) -> Answer:
        return _sums(processor.error_sums_words(x, y, dtype, stored_dtype))

    return asked(name, _sums(sums), ask, x.nbytes)


def _numbers(random: Random, dtype: str, count: int) -> Words:
    """Finite words of many magnitudes."""
    words = random.integers(0, 1 << 16, count).astype(WORDS[dtype])
    if dtype == "F16":
        return words & 0x7BFF | words & 0x8000
    wide = expand_bf16((words & 0xBFFF).astype(np.uint16))
    return (
        (wide >> 16).astype(np.uint16)
        if dtype == "BF16"
        else wide | random.integers(0, 1 << 16, count, np.uint32)
    )


def _sums(sums: Sums | ErrorSums) -> Answer:
    names = ("squared_error", "source_squares", "value_squares", "largest_error")
    return Answer(
        "summed",
        tuple(
            Part(
                f"{name.replace('_', ' ')} as binary64",
                np.array(getattr(sums, name)).view(np.uint64),
                (),
                True,
            )
            for name in names
        ),
    )
