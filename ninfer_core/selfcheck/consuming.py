"""What consumers are asked: products of drawn matrices and vectors, each judged by the criterion of its profile."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import BlockFormat
from ninfer_core.kernels.registry import Kernel
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.matvec import activations, judge, reference, weights_grouped, weights_nvfp4, weights_row
from ninfer_core.selfcheck.drawn import Random
from ninfer_core.selfcheck.payloads import Block, GroupedBlock, RowBlock, TileBlock, stored_bytes
from ninfer_core.selfcheck.questions import Answer, Depth, Difference, Part, Question, Verdict
from ninfer_core.selfcheck.reconstruction import drawn, shape_of
from ninfer_core.words import Words16

_NAN: Final = 0x7FC1


def matvec_questions(kernel: Kernel, random: Random, depth: Depth) -> Iterator[Question]:
    """Every question to a consumer: each matrix with a dense vector and with sparse ones; the last is the large one."""
    for rows, columns in ((128, 64),) if isinstance(kernel.format, BlockFormat) else ((1, 1), (5, 191)):
        yield from _products(kernel, random, rows, columns)
    faint = _faint(drawn(kernel.format, random, 128, 320))
    for i in range(2):  # what one of them hides in half a BF16 step shows in the other
        dense, *_ = activations(320, int(random.integers(1 << 31)))
        yield _question(f"subnormal scales alone, vector {i}", faint, dense)
    columns = 5_120 if depth.every_word else 320
    yield from _products(kernel, random, max(256, depth.weights // columns // 128 * 128), columns)


def _products(kernel: Kernel, random: Random, rows: int, columns: int) -> Iterator[Question]:
    block = drawn(kernel.format, random, rows, columns, largest_multiplier=0x5E00)
    for i, activation in reversed([*enumerate(activations(columns, int(random.integers(1 << 31))))]):
        yield _question(f"shape {rows}x{columns}, vector {i}", block, activation)


def _faint(block: Block) -> Block:
    """The block with a subnormal scale in every place that has one: nothing beside it hides a group that is lost."""
    match block:
        case GroupedBlock():
            scales = _subnormal(block.planes.scales, 0x3FF)
            planes = GroupedPlanes(block.planes.base, block.planes.high, scales)
            return GroupedBlock(block.format, block.rows, block.columns, planes)
        case RowBlock():
            return RowBlock(block.codes, _subnormal(block.scales, 0x7F))
        case TileBlock():
            return TileBlock(
                block.rows, block.columns, block.packed, _subnormal(block.scales, 7), block.divisor
            )


def _subnormal(scales: NDArray[Any], largest: int) -> NDArray[Any]:
    return np.where(scales > 0, scales % largest + 1, 0).astype(scales.dtype)


def _question(name: str, block: Block, activation: Words16) -> Question:
    rows, _ = shape_of(block)
    expected = reference(_weights(block), activation)
    swizzled = block.swizzled if isinstance(block, TileBlock) else None

    def ask(processor: Any) -> Answer:
        out = np.full(rows, _NAN, np.uint16)  # what is not written shows
        match block:
            case GroupedBlock():
                processor.matvec_grouped(block.format, block.columns, block.planes, activation, out)
            case RowBlock():
                processor.matvec_row(block.codes, block.scales, activation, out)
            case TileBlock():
                processor.matvec_nvfp4(block.packed, swizzled, block.divisor, activation, out)
        return Answer("multiplied", (Part("output", out, ("row",), hexadecimal=True),))

    def judged(found: Answer) -> Verdict:
        verdict = judge(expected, found.parts[0].numbers)
        if verdict.first is None:
            return Verdict(verdict.outputs, 0, None)
        wrong = verdict.first
        right = f"what some number from {wrong.low!r} to {wrong.high!r} rounds to"
        return Verdict(
            verdict.outputs,
            verdict.wrong,
            Difference(f"output at row {wrong.row}", right, f"{wrong.word:#06x}"),
        )

    return Question(name, ask, judged, stored_bytes(block))


def _weights(block: Block) -> Any:
    match block:
        case GroupedBlock():
            return weights_grouped(block.format, block.columns, block.planes)
        case RowBlock():
            return weights_row(block.codes, block.scales)
        case TileBlock():
            return weights_nvfp4(block.packed, block.swizzled, block.divisor, block.columns)
