"""What reconstructions are asked: known answers, every code under many scales, odd shapes, drawn words."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import BlockFormat, GroupedFormat, NumericFormat
from ninfer_core.kernels.registry import Kernel
from ninfer_core.layouts.block_scale import unpack_codes
from ninfer_core.layouts.row_split import unpack
from ninfer_core.oracles.encoding import rounded32
from ninfer_core.selfcheck.drawn import Random, fp8_words, grouped_words, nvfp4_words
from ninfer_core.selfcheck.payloads import (
    Block,
    GroupedBlock,
    RowBlock,
    TileBlock,
    block_of,
    grouped_block,
    tile_block,
)
from ninfer_core.selfcheck.questions import (
    MANY_SHAPES,
    ODD_SHAPES,
    TILE_SHAPES,
    WIDE_SHAPE,
    Answer,
    Depth,
    Part,
    Question,
    asked,
)
from ninfer_core.selfcheck.vectors import reconstruct_cases
from ninfer_core.words import (
    E2M1,
    Words16,
    Words32,
    expand_bf16,
    expand_binary16,
    expand_e4m3fn,
    finite_value,
    narrow_bf16,
    values_of_binary32,
)

_DIVISORS: Final = (0x3F800000, 0x00000001, 0x7F7FFFFF, 0x40490FDB)
_FP8_CODES: Final = np.array([word for word in range(256) if word & 0x7F != 0x7F], np.uint8)


def reconstruct_questions(kernel: Kernel, random: Random, depth: Depth) -> Iterator[Question]:
    """Every question to a reconstruction; the last one is the large one."""
    for case in reconstruct_cases(kernel.format):
        words = case.fp32 if kernel.dtype == "FP32" else case.bf16
        block = block_of(kernel.format, case.shape, case.payload)
        name = f"known {case.id} of reconstruct.{kernel.format.name}.json"
        yield replace(_question(kernel, name, block, words), why=partial(reason_of, case.why))
    for name, block in _every_code(kernel.format, random, depth):
        yield _computed(kernel, name, block)
    for block in drawn_shapes(kernel.format, random):
        yield _computed(kernel, f"shape {'x'.join(map(str, shape_of(block)))}", block)
    if depth.every_word and not isinstance(kernel.format, BlockFormat):
        for rows, columns in MANY_SHAPES:
            yield _computed(kernel, f"shape {rows}x{columns}", drawn(kernel.format, random, rows, columns))
    yield _computed(kernel, "drawn", drawn_block(kernel.format, random, depth.weights))


def reason_of(why: str, row: int) -> str:
    """The reason of a case, which is that of all its rows."""
    del row
    return why


def drawn_shapes(fmt: NumericFormat, random: Random) -> Iterator[Block]:
    """Legal blocks in shapes around the edges of strips, groups and tiles."""
    for rows, columns in TILE_SHAPES if isinstance(fmt, BlockFormat) else (*ODD_SHAPES, WIDE_SHAPE):
        yield drawn(fmt, random, rows, columns)


def drawn_block(fmt: NumericFormat, random: Random, weights: int) -> Block:
    """A legal block of about so many weights."""
    if isinstance(fmt, BlockFormat):
        return drawn(fmt, random, 128, max(1, weights // (128 * 64)) * 64)
    return drawn(fmt, random, max(2, weights // 1000), 1000)


def drawn(
    fmt: NumericFormat, random: Random, rows: int, columns: int, *, largest_multiplier: int = 0x7F7F
) -> Block:
    """A legal block of one shape; the multipliers of FP8 rows are words up to a largest one."""
    match fmt:
        case GroupedFormat():
            return grouped_block(fmt, *grouped_words(random, fmt, rows, columns))
        case BlockFormat():
            return tile_block(*nvfp4_words(random, rows, columns))
        case _:
            return RowBlock(*fp8_words(random, rows, columns, largest_multiplier))


def shape_of(block: Block) -> tuple[int, int]:
    """[N, K]."""
    return block.codes.shape if isinstance(block, RowBlock) else (block.rows, block.columns)


def _every_code(fmt: NumericFormat, random: Random, depth: Depth) -> Iterator[tuple[str, Block]]:
    match fmt:
        case GroupedFormat():
            scales = _scales(1, 0x7C00, random, depth)
            width = -(-len(fmt.codes) // fmt.group) * fmt.group
            lanes = np.array([fmt.codes[i % len(fmt.codes)] for i in range(width)], np.int8)
            codes = np.tile(lanes, (scales.size, 1))
            groups = np.repeat(scales[:, None], width // fmt.group, axis=1)
            yield "every code", grouped_block(fmt, codes, groups)
        case BlockFormat():
            e2m1 = np.tile(np.arange(16, dtype=np.uint8), (128, 4))
            e4m3 = np.repeat(np.minimum(np.arange(128), 0x7E).astype(np.uint8)[:, None], 4, axis=1)
            for divisor in _DIVISORS if depth.every_word else _DIVISORS[:2]:
                yield f"every code over {divisor:#010x}", tile_block(e2m1, e4m3, divisor)
        case _:
            multipliers = _scales(0, 0x7F80, random, depth)
            rows = np.tile(_FP8_CODES, (multipliers.size, 1))
            rows[multipliers == 0] &= 0x80
            yield "every code", RowBlock(rows, multipliers)


def _scales(first: int, end: int, random: Random, depth: Depth) -> Words16:
    """Every 16-bit scale word in a range, or some of them and those at its ends."""
    every = np.arange(first, end, dtype=np.uint16)
    return every if depth.every_word else np.concatenate([every[:4], every[-4:], random.choice(every, 24)])


def _computed(kernel: Kernel, name: str, block: Block) -> Question:
    words32 = represented(block)
    return _question(kernel, name, block, words32 if kernel.dtype == "FP32" else narrow_bf16(words32))


def represented(block: Block) -> Words32:
    """Binary32 words of the weights [N, K]: exact in binary64, or by the oracle, and rounded once by integers."""
    match block:
        case GroupedBlock():
            planes = block.planes
            words = unpack(block.format, block.columns, planes.base, planes.high, planes.scales)
            scales = np.repeat(values_of_binary32(expand_binary16(words.scales)), block.format.group, axis=1)
            return rounded32((words.codes * scales)[:, : block.columns])
        case TileBlock():
            codes = unpack_codes(block.packed, block.columns)
            table = _table(block.divisor)
            found: Words32 = table[np.repeat(block.scales, 16, axis=1), codes & 7]
            found |= (codes >> 3).astype(np.uint32) << np.uint32(31)
            return found
        case RowBlock():
            multipliers = values_of_binary32(expand_bf16(block.scales))
            return rounded32(values_of_binary32(expand_e4m3fn(block.codes)) * multipliers[:, None])


def _table(divisor: int) -> Words32:
    """Words [127, 8] of the nonnegative codes under every legal scale.

    A product of code and scale is exact. In binary64 its quotient by a binary32 number is either exactly half way between
    two binary32 words, or further from there than it can be off: rounding it once more gives the word of the quotient.
    """
    codes = np.array([finite_value(E2M1, code) for code in range(8)], np.float64)
    scales = values_of_binary32(expand_e4m3fn(np.arange(0x7F, dtype=np.uint8)))
    return rounded32(scales[:, None] * codes / values_of_binary32(np.array([divisor], np.uint32)))


def _question(kernel: Kernel, name: str, block: Block, words: NDArray[Any]) -> Question:
    out: NDArray[Any] = np.empty(shape_of(block), np.uint32 if kernel.dtype == "FP32" else np.uint16)

    def work(processor: Any) -> None:
        match block:
            case GroupedBlock():
                processor.reconstruct_grouped(block.format, block.columns, block.planes, out)
            case TileBlock():
                codes = block.packed.reshape(block.rows, block.columns // 2)
                processor.reconstruct_nvfp4(codes, block.scales, block.divisor, out)
            case RowBlock():
                processor.reconstruct_row(block.codes, block.scales, out)

    def ask(processor: Any) -> Answer:
        out.fill(0xA5A5)  # what is not written shows
        work(processor)
        return _answer(out.copy())

    return asked(name, _answer(words), ask, out.nbytes, work)


def _answer(words: NDArray[Any]) -> Answer:
    return Answer("reconstructed", (Part("weight", words, ("row", "column"), hexadecimal=True),))
