"""What is asked where a block is held to its source in one visit: is it the encoding, and how far is it off."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.values import CodeStatistics, ErrorSums, GroupedPlanes
from ninfer_core.layouts.row_split import GroupedWords, pack
from ninfer_core.oracles.encoding import encode_grouped
from ninfer_core.oracles.parity import Sums, sum_grouped
from ninfer_core.oracles.statistics import count_grouped
from ninfer_core.selfcheck.answers import code_answer, code_histogram, sums_answer
from ninfer_core.selfcheck.drawn import Random, Words, source_rows, widened
from ninfer_core.selfcheck.questions import Answer, Question, asked
from ninfer_core.words import expand_binary16, values_of_binary32

_SHAPES = ((3, 65), (1, 4_230))  # the last one is more than a tile, and has a tail


def canonical_questions(fmt: GroupedFormat, dtype: str, random: Random) -> Iterator[Question]:
    """A block that its source encodes to, and the same block with one code changed, for each visit."""
    for rows, columns in _SHAPES:
        source = source_rows(random, fmt, dtype, rows, columns)
        words32 = widened(dtype, source)
        matrix = encode_grouped(fmt, words32)
        scales = values_of_binary32(expand_binary16(matrix.scales))
        x = values_of_binary32(words32)
        sums = sum_grouped(fmt.group, x.tolist(), matrix.codes.tolist(), scales.tolist())
        own = GroupedWords(matrix.codes, matrix.scales)
        codes = matrix.codes.copy()
        codes[-1, -1] += -1 if codes[-1, -1] > 0 else 1
        other = GroupedWords(codes, np.maximum(matrix.scales, 1))
        for visit, question in _VISITS.items():
            yield question(f"{visit} {rows}x{columns}", fmt, dtype, source, own, sums)
            yield question(f"{visit} {rows}x{columns}, a code changed", fmt, dtype, source, other, None)


def _parity(
    name: str, fmt: GroupedFormat, dtype: str, source: Words, words: GroupedWords, sums: Sums | None
) -> Question:
    planes = GroupedPlanes(*pack(fmt, words))

    def ask(processor: Any) -> Answer:
        return _held(processor.parity_grouped(fmt, source.shape[1], planes, source, dtype))

    return asked(name, _held(sums), ask)


def _survey(
    name: str, fmt: GroupedFormat, dtype: str, source: Words, words: GroupedWords, sums: Sums | None
) -> Question:
    planes = GroupedPlanes(*pack(fmt, words))
    counts = count_grouped(fmt, words.codes, words.scales)
    counted = code_answer(code_histogram(fmt, [counts]), counts)

    def ask(processor: Any) -> Answer:
        acc = CodeStatistics.empty(fmt)
        found = processor.survey_grouped(fmt, source.shape[1], planes, source, dtype, acc)
        return _surveyed(found, code_answer(acc.histogram, acc))

    return asked(name, _surveyed(sums, counted), ask)


def _surveyed(sums: Sums | ErrorSums | None, counts: Answer) -> Answer:
    """Counts only mean something where there are sums."""
    held = _held(sums)
    return held if sums is None else Answer(held.went, (*counts.parts, *held.parts))


def _held(sums: Sums | ErrorSums | None) -> Answer:
    return Answer("not the encoding of its source") if sums is None else sums_answer(sums)


_VISITS = {"parity_grouped": _parity, "survey_grouped": _survey}
