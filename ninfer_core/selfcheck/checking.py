"""What value checks are asked: known payloads, legal words, and one fault in each kind of place."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from ninfer_core.formats import BlockFormat, GroupedFormat, NumericFormat
from ninfer_core.kernels.registry import Kernel
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.layouts.row_split import GroupedWords, groups_per_row, pack, unpack
from ninfer_core.oracles.checks import (
    ILLEGAL_CODE,
    INVALID_SCALE,
    PADDING,
    ZERO_SCALE_OVER_CODE,
    check_block_scales,
    check_grouped,
    check_rows,
)
from ninfer_core.selfcheck.drawn import Random
from ninfer_core.selfcheck.payloads import Block, GroupedBlock, RowBlock, TileBlock, block_of, stored_bytes
from ninfer_core.selfcheck.questions import Answer, Depth, Part, Question, asked
from ninfer_core.selfcheck.reconstruction import drawn, drawn_block, drawn_shapes, reason_of, shape_of
from ninfer_core.selfcheck.vectors import check_cases

_BAD_SCALES: Final = (0x7C00, 0x7E01, 0x8000, 0xFFFF)  # binary16
_BAD_MULTIPLIERS: Final = (0x7F80, 0x7FC1, 0x8000, 0xFFFF)
_BAD_BLOCK_SCALES: Final = (0x7F, 0x80, 0xFF)
_WHOLE: Final = 4_224  # the same without padding
_WIDE: Final = 4_100  # columns: more than any step of a scan, and a wholly physical group at the end


def check_questions(kernel: Kernel, random: Random, depth: Depth) -> Iterator[Question]:
    """Every question to a check; the last one is the large one, legal but for its very last word."""
    for case in check_cases(kernel.format):
        block = block_of(kernel.format, case.shape, case.payload)
        name = f"known {case.id} of check.{kernel.format.name}.json"
        yield replace(_question(name, block, expected_mask(block)), why=partial(reason_of, case.why))
    for block in drawn_shapes(kernel.format, random):
        yield _question(f"shape {'x'.join(map(str, shape_of(block)))}", block, 0)
    yield from _planted(kernel.format, random, 40 if depth.every_word else 3)
    block = drawn_block(kernel.format, random, depth.weights)
    yield _question("drawn", block, 0)
    yield _question("drawn, the last scale invalid", _last_scale(block), INVALID_SCALE)


def expected_mask(block: Block) -> int:
    """What the oracles see in a block."""
    match block:
        case GroupedBlock():
            planes = block.planes
            words = unpack(block.format, block.columns, planes.base, planes.high, planes.scales)
            return check_grouped(block.format, block.columns, words.codes, words.scales)
        case RowBlock():
            return check_rows(block.codes, block.scales)
        case TileBlock():
            return check_block_scales(block.scales)


def _question(name: str, block: Block, mask: int) -> Question:
    def ask(processor: Any) -> Answer:
        match block:
            case GroupedBlock():
                return _answer(processor.scan_grouped(block.format, block.columns, block.planes))
            case RowBlock():
                return _answer(processor.scan_row(block.codes, block.scales))
            case TileBlock():
                return _answer(processor.scan_block_scales(block.scales))

    return asked(name, _answer(mask), ask, stored_bytes(block))


def _answer(mask: int) -> Answer:
    return Answer("checked", (Part("mask", np.array(mask, np.uint8), hexadecimal=True),))


def _planted(fmt: NumericFormat, random: Random, drawn_places: int) -> Iterator[Question]:
    match fmt:
        case GroupedFormat():
            yield from _planted_groups(fmt, random, drawn_places)
        case BlockFormat():
            block = drawn(fmt, random, 128, 192)
            if not isinstance(block, TileBlock):
                raise TypeError(f"{fmt.name} lies in tiles")
            for place in (0, 4, 511, 512, 1535, *random.integers(0, 1_536, drawn_places).tolist()):
                for word in _BAD_BLOCK_SCALES:
                    scales = block.scales.copy()
                    scales.reshape(-1)[place] = word
                    yield _question(
                        f"scale {place} is {word:#04x}", replace(block, scales=scales), INVALID_SCALE
                    )
        case _:
            yield from _planted_rows(drawn(fmt, random, 3, _WIDE), random, drawn_places)


def _planted_rows(block: Block, random: Random, drawn_places: int) -> Iterator[Question]:
    """One broken word of FP8 rows, at the ends, in the middle, and in places that are drawn."""
    if not isinstance(block, RowBlock):
        raise TypeError("FP8 rows are a RowBlock")
    legal = RowBlock(block.codes, np.maximum(block.scales, 1))
    places = [(0, 0), (1, 4_095), (2, _WIDE - 1)]
    places += [(int(random.integers(3)), int(random.integers(_WIDE))) for _ in range(drawn_places)]
    for row, column in places:
        for word in (0x7F, 0xFF):
            codes = legal.codes.copy()
            codes[row, column] = word
            yield _question(f"code {word:#04x} in row {row}", replace(legal, codes=codes), ILLEGAL_CODE)
        for word in _BAD_MULTIPLIERS:
            scales = legal.scales.copy()
            scales[row] = word
            yield _question(f"scale {word:#06x} in row {row}", replace(legal, scales=scales), INVALID_SCALE)
        codes, scales = legal.codes.copy(), legal.scales.copy()
        codes[row] = 0x80
        codes[row, column], scales[row] = 1, 0
        yield _question(f"zero scale in row {row}", RowBlock(codes, scales), ZERO_SCALE_OVER_CODE)


def _planted_groups(fmt: GroupedFormat, random: Random, drawn_places: int) -> Iterator[Question]:
    """One broken word of a grouped matrix: at the ends of rows and of steps, in places that are drawn, and in what is
    physical alone."""
    for rows, columns in ((3, _WIDE), (2, _WHOLE)):
        legal = drawn(fmt, random, rows, columns)
        if not isinstance(legal, GroupedBlock):
            raise TypeError(f"{fmt.name} is grouped")
        groups = -(-columns // fmt.group)
        edges = {(0, 0), (1, 4_096 // fmt.group - 1), (1, groups - 1), (rows - 1, groups - 1)}
        for row, group in sorted(edges):
            lanes = min(fmt.group, columns - group * fmt.group)
            yield from _broken_group(legal, row, group, lanes - 1)  # the last logical lane
        for _ in range(drawn_places):
            row, group = int(random.integers(rows)), int(random.integers(groups))
            lanes = min(fmt.group, columns - group * fmt.group)
            yield from _broken_group(legal, row, group, int(random.integers(lanes)))
        if columns % fmt.group == 0:
            continue
        last, beyond = groups - 1, columns - (groups - 1) * fmt.group
        for row, lane in ((1, beyond), (0, fmt.group - 1), (2, int(random.integers(beyond, fmt.group)))):
            yield _changed(legal, "a physical lane", PADDING, row, last, lane, code=1)
        physical = groups_per_row(fmt, columns) - 1
        if physical > last:
            for lane in (fmt.group - 1, int(random.integers(fmt.group))):
                yield _changed(legal, "a physical code", PADDING, 2, physical, lane, code=1)
            yield _changed(legal, "a physical scale", PADDING, 0, physical, 0, scale=1)


def _broken_group(legal: GroupedBlock, row: int, group: int, lane: int) -> Iterator[Question]:
    """Each kind of broken word in one group."""
    fmt = legal.format
    for word in _BAD_SCALES:
        yield _changed(legal, f"scale {word:#06x}", INVALID_SCALE, row, group, 0, scale=word)
    for code in (1, fmt.qmin):
        yield _changed(
            legal, f"zero scale over {code}", ZERO_SCALE_OVER_CODE, row, group, lane, scale=0, code=code
        )
    if fmt.code_bits == 8:
        yield _changed(legal, "code -128", ILLEGAL_CODE, row, group, lane, scale=1, code=-128)


def _changed(
    legal: GroupedBlock,
    what: str,
    mask: int,
    row: int,
    group: int,
    lane: int,
    *,
    scale: int | None = None,
    code: int | None = None,
) -> Question:
    """The block with other words in one group; under a zero scale its other codes are zero."""
    fmt, planes = legal.format, legal.planes
    words = unpack(fmt, legal.columns, planes.base, planes.high, planes.scales)
    codes, scales = words.codes.copy(), words.scales.copy()
    if scale is not None:
        scales[row, group] = scale
    if code is not None:
        if scale == 0:
            codes[row, group * fmt.group : (group + 1) * fmt.group] = 0
        codes[row, group * fmt.group + lane] = code
    packed = GroupedPlanes(*pack(fmt, GroupedWords(codes, scales)))
    name = f"{what} in row {row}, group {group}, lane {lane} of {legal.columns} columns"
    return _question(name, replace(legal, planes=packed), mask)


def _last_scale(block: Block) -> Block:
    """The block with the scale of its last word invalid."""
    match block:
        case GroupedBlock():
            scales = block.planes.scales.copy().reshape(block.rows, -1)
            scales[-1, (block.columns - 1) // block.format.group] = 0x7C00
            return replace(block, planes=replace(block.planes, scales=scales.reshape(-1)))
        case RowBlock():
            multipliers = block.scales.copy()
            multipliers[-1] = 0x7F80
            return replace(block, scales=multipliers)
        case TileBlock():
            bytewise = block.scales.copy()
            bytewise[-1, -1] = 0x7F
            return replace(block, scales=bytewise)
