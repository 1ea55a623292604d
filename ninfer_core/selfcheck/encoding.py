"""What encoders are asked: known answers, words on which rounding turns, refusals, odd shapes, every word of 16 bits."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.registry import KERNELS, Kernel
from ninfer_core.kernels.values import SOURCE_DTYPES, EncodeCounts, EncodeFault, GroupedPlanes
from ninfer_core.layouts.row_split import groups_per_row, unpack
from ninfer_core.oracles.encoding import encode_grouped, encode_rows
from ninfer_core.selfcheck.drawn import Random, Words, largest_word, source_fp8, source_rows, widened
from ninfer_core.selfcheck.edges import edge_groups, edge_rows
from ninfer_core.selfcheck.questions import (
    MANY_SHAPES,
    ODD_SHAPES,
    WIDE_SHAPE,
    Answer,
    Depth,
    Part,
    Question,
    asked,
)
from ninfer_core.selfcheck.refusals import refusals
from ninfer_core.selfcheck.vectors import EncodeCase, encode_cases
from ninfer_core.words import values_of_binary32

_COLUMNS: Final = 1000  # of drawn matrices: no multiple of 128


def encode_questions(kernel: Kernel, random: Random, depth: Depth) -> Iterator[Question]:
    """Every question to an encoder; the last one is the large one."""
    fmt, dtype = kernel.format, str(kernel.dtype)
    for case in encode_cases(fmt):
        source = _as_words_of(dtype, case)
        if source is not None:
            counted = _placed(kernel) and case.rescued is not None and case.clamped is not None
            name = f"known {case.id} of encode.{fmt.name}.json"
            yield replace(
                _question(kernel, name, source, _known(case, source, _placed(kernel)), counted),
                why=case.reason,
            )

    def draw(rows: int, columns: int) -> Words:
        if isinstance(fmt, GroupedFormat):
            return source_rows(random, fmt, dtype, rows, columns)
        return source_fp8(random, dtype, rows, columns)

    for rows, columns in (*ODD_SHAPES, WIDE_SHAPE, *(MANY_SHAPES if depth.every_word else ())):
        yield _computed(kernel, f"shape {rows}x{columns}", draw(rows, columns))
    for name, source, fault in refusals(kernel):
        yield _question(kernel, name, source, _refused(fault, _placed(kernel)))
    more = 4_000 if depth.every_word else 8
    if isinstance(fmt, GroupedFormat):
        yield _computed(kernel, "edges", edge_groups(random, fmt, dtype, more))
    else:
        yield _computed(kernel, "edges", edge_rows(random, dtype, more))
    if depth.every_word and SOURCE_DTYPES[dtype].bits == 16:
        yield _computed(kernel, "every word", _every_word(kernel, random))
    yield _computed(kernel, "drawn", draw(max(2, depth.weights // _COLUMNS), _COLUMNS))


def _as_words_of(dtype: str, case: EncodeCase) -> Words | None:
    """The source of a case in words of `dtype`, where these hold every one of them exactly."""
    if case.dtype == dtype:
        return case.source
    if case.dtype == "F32" and dtype == "BF16" and not (case.source & 0xFFFF).any():
        return (case.source >> 16).astype(np.uint16)
    if case.dtype == "F32" and dtype == "F64":
        return values_of_binary32(case.source).view(np.uint64)
    return None


def _placed(kernel: Kernel) -> bool:
    """Whether a kernel says lane and word of a refusal, and counts: those of somebody else are asked for neither."""
    return kernel.name in KERNELS


def _known(case: EncodeCase, source: Words, placed: bool) -> Answer:
    if case.refusal is not None:
        fault = case.refusal
        if fault.lane is None:
            return _refused(fault, placed)
        group = case.format.group if isinstance(case.format, GroupedFormat) else 0
        word = int(source[fault.row, fault.group * group + fault.lane])
        return _refused(EncodeFault(fault.kind, fault.row, fault.group, fault.lane, word), placed)
    if case.codes is None or case.scales is None:
        raise ValueError(f"the case {case.id} neither answers nor refuses")
    counts = None
    if placed and case.rescued is not None and case.clamped is not None:
        counts = EncodeCounts(case.rescued, case.clamped)
    if not isinstance(case.format, GroupedFormat):
        return _rows(case.codes, case.scales.reshape(-1), counts)
    return _grouped(case.format, *_padded(case.format, case.codes.view(np.int8), case.scales), counts)


def _computed(kernel: Kernel, name: str, source: Words) -> Question:
    """A source that can be encoded, and what the oracle makes of it."""
    words32, fmt, counted = widened(str(kernel.dtype), source), kernel.format, _placed(kernel)
    if isinstance(fmt, GroupedFormat):
        matrix = encode_grouped(fmt, words32)
        counts = EncodeCounts(matrix.rescued, matrix.clamped) if counted else None
        answer = _grouped(fmt, *_padded(fmt, matrix.codes, matrix.scales), counts)
    else:
        rows = encode_rows(words32)
        answer = _rows(rows.codes, rows.scales, EncodeCounts(0, rows.clamped) if counted else None)
    return _question(kernel, name, source, answer, counted)


def _question(kernel: Kernel, name: str, source: Words, answer: Answer, counted: bool = True) -> Question:
    dtype, fmt = str(kernel.dtype), kernel.format
    source = np.ascontiguousarray(source)
    if isinstance(fmt, GroupedFormat):
        return _grouped_question(fmt, dtype, name, source, answer, counted, _placed(kernel))
    return _row_question(dtype, name, source, answer, counted, _placed(kernel))


def _grouped_question(
    fmt: GroupedFormat, dtype: str, name: str, source: Words, answer: Answer, counted: bool, placed: bool
) -> Question:
    out = GroupedPlanes.empty(fmt, *source.shape)

    def work(processor: Any) -> EncodeFault | EncodeCounts:
        result: EncodeFault | EncodeCounts = processor.encode(fmt, source, dtype, out)
        return result

    def ask(processor: Any) -> Answer:
        for plane in (out.base, out.high, out.scales):
            plane.fill(0xA5)  # what is not written shows
        result = work(processor)
        if isinstance(result, EncodeFault):
            return _refused(result, placed)
        words = unpack(fmt, source.shape[1], out.base, out.high, out.scales.copy())
        return _grouped(fmt, words.codes.copy(), words.scales, result if counted else None)

    return asked(name, answer, ask, source.nbytes, work)


def _row_question(
    dtype: str, name: str, source: Words, answer: Answer, counted: bool, placed: bool
) -> Question:
    codes, scales = np.empty(source.shape, np.uint8), np.empty(source.shape[0], np.uint16)

    def work(processor: Any) -> EncodeFault | EncodeCounts:
        largest = processor.largest_magnitudes(source, dtype)
        result: EncodeFault | EncodeCounts = processor.encode_rows(source, dtype, largest, codes, scales)
        return result

    def ask(processor: Any) -> Answer:
        codes.fill(0xA5)
        scales.fill(0xA5A5)
        result = work(processor)
        if isinstance(result, EncodeFault):
            return _refused(result, placed)
        return _rows(codes.copy(), scales.copy(), result if counted else None)

    return asked(name, answer, ask, source.nbytes, work)


def _padded(
    fmt: GroupedFormat, codes: NDArray[np.int8], scales: NDArray[np.uint16]
) -> tuple[NDArray[np.int8], NDArray[np.uint16]]:
    """Logical words with the zeros of the layout: all physical lanes and groups."""
    rows, columns = codes.shape
    groups = groups_per_row(fmt, columns)
    all_codes, all_scales = np.zeros((rows, groups * fmt.group), np.int8), np.zeros((rows, groups), np.uint16)
    all_codes[:, :columns], all_scales[:, : scales.shape[1]] = codes, scales
    return all_codes, all_scales


def _grouped(
    fmt: GroupedFormat, codes: NDArray[np.int8], scales: NDArray[np.uint16], counts: EncodeCounts | None
) -> Answer:
    shaped = codes.reshape(*scales.shape, fmt.group)
    parts = (
        Part("scale", scales, ("row", "group"), hexadecimal=True),
        Part("code", shaped, ("row", "group", "lane")),
    )
    return Answer("encoded", (*parts, *_counts(counts)))


def _rows(codes: NDArray[np.uint8], scales: NDArray[np.uint16], counts: EncodeCounts | None) -> Answer:
    parts = (
        Part("scale", scales, ("row",), hexadecimal=True),
        Part("code", codes, ("row", "column"), hexadecimal=True),
    )
    return Answer("encoded", (*parts, *_counts(counts)))


def _counts(counts: EncodeCounts | None) -> tuple[Part, ...]:
    if counts is None:
        return ()
    return Part("rescued groups", np.array(counts.rescued)), Part("clamped lanes", np.array(counts.clamped))


def _refused(fault: EncodeFault, placed: bool) -> Answer:
    if not placed:
        return Answer(f"refused: {fault.kind} in row {fault.row}, group {fault.group}")
    lane = "" if fault.lane is None else f", lane {fault.lane}"
    return Answer(
        f"refused: {fault.kind} in row {fault.row}, group {fault.group}{lane}, word {fault.word:#x}"
    )


def _every_word(kernel: Kernel, random: Random) -> Words:
    """Every 16-bit word that can be encoded: in order, each among its neighbours, and shuffled."""
    dtype, fmt = str(kernel.dtype), kernel.format
    largest = 65504.0 * fmt.qmax if isinstance(fmt, GroupedFormat) else np.inf
    magnitudes = np.arange(largest_word(dtype, largest) + 1)
    words = np.concatenate([magnitudes, magnitudes | SOURCE_DTYPES[dtype].sign_bit])
    shuffled = random.permutation(words)
    if not isinstance(fmt, GroupedFormat):  # in a row of small words alone, a multiplier has no reciprocal
        words = shuffled
    both = np.concatenate([words, shuffled]).astype(np.uint16)
    return both[: both.size // 320 * 320].reshape(-1, 320)
