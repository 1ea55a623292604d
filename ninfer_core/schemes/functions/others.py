"""Decoders of ternary and binary weights, of smoothed, rotated and reordered ones, and of sums of codebook vectors."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from ninfer_core.schemes import hadamard
from ninfer_core.schemes.functions.build import Tensor
from ninfer_core.schemes.functions.frame import Frame, Recipe
from ninfer_core.schemes.rotated.eetq import ORDER
from ninfer_core.schemes.ternary.bitnet_hf import DIVIDES
from ninfer_core.schemes.ternary.paretoq import STEPS


def bitnet_hf(frame: Frame) -> Tensor:
    """Code minus one, over the scale or times it; bits 2k of row r hold row r + k rows."""
    build, (outputs, inputs) = frame.build, frame.shape
    rows = frame.shape_of("weight")[0]
    words = build.reshape(frame["weight"], 1, rows, inputs)
    lows = build.constant([[[2 * place]] for place in range(4)], "UINT8")
    codes = build.reshape(build.mask(build.right(words, lows), 3), 4 * rows, inputs)
    levels = build.subtract(build.cast(build.cut(codes, 0, 0, outputs), "FLOAT"), 1)
    scale = frame.real("weight_scale")
    divides = frame.params["linear_class"] == DIVIDES
    return build.divide(levels, scale) if divides else build.multiply(levels, scale)


def bitnet_i2_s(frame: Frame) -> Tensor:
    """Code minus one, times the scale; a block has its first 32 codes in the top components."""
    build = frame.build
    blocks = frame.shape_of("code_0")[0] // 32
    planes = [build.reshape(frame[f"code_{place}"], blocks, 1, 32) for place in (0, 32, 64, 96)]
    levels = build.subtract(build.cast(build.concat(planes, 1), "FLOAT"), 1)
    return build.multiply(levels, frame["scale"])


def paretoq(frame: Frame) -> Tensor:
    """Level over the number of steps, where there are steps, then times alpha."""
    build, levels = frame.build, frame["levels"]
    steps = STEPS.get(frame.params["w_bits"])
    return build.multiply(levels if steps is None else build.divide(levels, steps[0]), frame["alpha"])


def binary_xnor(frame: Frame) -> Tensor:
    """Alpha of the channel where the bit is set, minus alpha where it is not."""
    build, (outputs, inputs) = frame.build, frame.shape
    signs = build.stream(frame["payload"], 1, inputs, (outputs,), frame.shape_of("payload")[1])
    alpha = frame.real_as("alpha", outputs, 1)
    is_set = build.equal(build.cast(signs, "INT32"), 1)
    return build.where(is_set, alpha, build.op("Neg", alpha))


def eetq(frame: Frame) -> Tensor:
    """Code times the scale of its output; bytes lie in the tool's order with 128 added."""
    build, (inputs, outputs) = frame.build, frame.shape
    biased = build.reshape(frame.unsigned("qweight"), outputs // 2, inputs // 64, 2, 4, 16)
    ordered = build.gather(biased, build.constant(np.argsort(ORDER), "INT64"), 4)
    placed = build.reshape(build.transpose(ordered, 1, 3, 4, 0, 2), inputs, outputs)
    codes = build.subtract(build.cast(placed, "INT32"), 128)
    return build.multiply(build.cast(codes, "FLOAT"), frame.real("weight_scales"))


def smoothquant(frame: Frame) -> Tensor:
    """Code times the scale of its output, over the factor of its input where factors are stored."""
    build = frame.build
    scaled = build.multiply(frame.real("weight"), frame.real_as("weight_scale", frame.shape[0], 1))
    return build.divide(scaled, frame.real("smooth")) if "smooth" in frame else scaled


def quarot(frame: Frame) -> Tensor:
    """Code times the scale of its row; the sides named are then rotated back (R11)."""
    build, (outputs, inputs) = frame.build, frame.shape
    codes = build.stream(frame["weight"], 4, inputs, (outputs,), inputs // 2)
    flipped = build.op("BitwiseXor", codes, build.constant(8, "UINT8"))
    numbers = build.cast(build.subtract(build.cast(flipped, "INT32"), 8), "FLOAT")
    values = build.multiply(numbers, frame.real("weight_scales"))
    sides = frame.params["unrotate"]
    if sides in ("input", "both"):
        values = rotated(frame, values, outputs, inputs)
    if sides in ("output", "both"):
        across = rotated(frame, build.transpose(values, 1, 0), inputs, outputs)
        values = build.transpose(across, 1, 0)
    return values


def rotated(frame: Frame, values: Tensor, rows: int, size: int) -> Tensor:
    """Rows times Hadamard's matrix, by sums and differences in the order of `hadamard.transform`: bit for bit the same."""
    build, half = frame.build, 1
    while half < size:
        runs = build.reshape(values, rows, size // (2 * half), 2, half)
        low, high = (build.cut(runs, 2, at, at + 1) for at in (0, 1))
        values = build.concat([build.add(low, high), build.subtract(low, high)], 2)
        half *= 2
    flat = build.reshape(values, rows, size)
    return build.multiply(flat, float(hadamard.factor(size)))


def aqlm(frame: Frame) -> Tensor:
    """Sums in the order of the codebooks, then times the scale."""
    build, params = frame.build, frame.params
    rows, groups, books = frame.shape_of("codes")
    out_group, in_group = params["out_group"], params["in_group"]
    codes = build.mask(build.cast(frame["codes"], "INT32"), (1 << params["bits"]) - 1)
    total = None
    for book in range(books):
        table = build.reshape(
            build.cut(frame["codebooks"], 0, book, book + 1), 1 << params["bits"], out_group, in_group
        )
        index = build.reshape(build.cut(codes, 2, book, book + 1), rows, groups)
        vectors = build.cast(build.gather(table, index), "FLOAT")
        total = vectors if total is None else build.add(total, vectors)
    if total is None:
        raise ValueError("a sum of no codebooks")
    scaled = build.multiply(total, frame.real("scales"))
    return build.transpose(scaled, 0, 2, 1, 3)


OTHERS: Final[Mapping[str, Recipe]] = {
    "bitnet_hf": Recipe(bitnet_hf),
    "bitnet_i2_s": Recipe(bitnet_i2_s),
    "paretoq": Recipe(paretoq),
    "binary_xnor": Recipe(binary_xnor),
    "eetq": Recipe(eetq),
    "smoothquant": Recipe(smoothquant),
    "quarot": Recipe(quarot),
    "aqlm": Recipe(aqlm),
}
