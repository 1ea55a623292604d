"""Decoders of mixed widths, of trellis codes and of the E8P lattice, with the rotations around them."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from ninfer_core.schemes.form import Array, Params
from ninfer_core.schemes.functions.build import Tensor
from ninfer_core.schemes.functions.frame import Frame, Given, Recipe
from ninfer_core.schemes.functions.others import rotated
from ninfer_core.schemes.lattice import e8p, trellis

_BLOCK: Final = 128  # of EXL3's Hadamard transforms
_TILE: Final = 16


def exl2(frame: Frame) -> Tensor:
    """(q - 2^(bits-1)) s in binary16, group by group, rows back in their original order."""
    build, (inputs, outputs), pairs = frame.build, frame.shape, frame.params["groups"]
    count = len(pairs) // 2
    levels = build.stream(frame.unsigned("q_scale"), 4, outputs, (count,), outputs // 8)
    roots = build.add(build.cast(levels, "FLOAT"), 1)
    units = frame.to_binary16(build.multiply(frame.real_as("q_scale_max", count, 1), 1 / 256))
    scales = frame.to_binary16(build.multiply(build.multiply(roots, roots), units))
    rows, first = [], 0
    for group, (bits, length) in enumerate(zip(pairs[::2], pairs[1::2], strict=True)):
        words = length * bits // 32
        columns = build.transpose(build.cut(frame.unsigned("q_weight"), 0, first, first + words), 1, 0)
        codes = build.transpose(build.stream(columns, bits, length, (outputs,), words), 1, 0)
        centred = build.subtract(build.cast(codes, "FLOAT"), 1 << bits - 1)
        rows.append(build.multiply(centred, build.cut(scales, 0, group, group + 1)))
        first += words
    stored = build.reshape(frame.to_binary16(build.concat(rows, 0)), inputs, outputs)
    return build.gather(stored, frame["q_invperm"])


def exl3(frame: Frame) -> Tensor:
    """diag(suh) H inner H diag(svh): the state of a symbol is the sixteen bits of a tile that end with it."""
    build, (inputs, outputs), bits = frame.build, frame.shape, frame.params["bits"]
    down, across = inputs // _TILE, outputs // _TILE
    pairs = build.reshape(frame.unsigned("trellis"), down, across, 8 * bits, 2)
    swapped = build.gather(pairs, build.constant([1, 0], "INT64"), 3)
    words = build.cast(build.reshape(swapped, down, across, 16 * bits), "UINT32")
    ends = (np.arange(trellis.SYMBOLS) + 1) * bits
    first, shift = np.divmod((ends - 16) % (trellis.SYMBOLS * bits), 16)
    high = build.left(build.gather(words, build.constant(first, "INT64"), 2), 16)
    low = build.gather(words, build.constant((first + 1) % (16 * bits), "INT64"), 2)
    both = build.right(build.either(high, low), build.constant(16 - shift, "UINT32"))
    numbers = frame.looked_up("numbers", build.mask(both, 0xFFFF))
    symbol_of_place = build.constant(np.argsort(trellis.places()), "INT64")
    tiles = build.reshape(build.gather(numbers, symbol_of_place, 2), down, across, _TILE, _TILE)
    values = build.reshape(build.transpose(tiles, 0, 2, 1, 3), inputs, outputs)
    values = _rotated_down(frame, values, inputs, outputs, _BLOCK)
    values = build.multiply(values, build.reshape(_side(frame, "suh", "su", inputs), inputs, 1))
    values = _rotated_across(frame, values, inputs, outputs, _BLOCK)
    return build.multiply(values, _side(frame, "svh", "sv", outputs))


def quip_sharp_e8p(frame: Frame) -> Tensor:
    """diag(SV) H (Wc H diag(SU)); a word holds four indices, patterns in its lower half and planes of signs above."""
    build, (outputs, inputs) = frame.build, frame.shape
    grid = (outputs // 16, inputs // 64, 8, 4)
    words = build.reshape(frame.unsigned("Qidxs"), *grid)
    pattern = build.cast(build.fields(words, range(0, 32, 8), 8, grid), "INT32")
    planes = build.cast(build.reshape(build.fields(words, range(32, 64), 1, grid), *grid, 8, 4), "INT32")
    weights = build.constant([[1 << bit] for bit in range(8)], "INT32")
    axes = build.constant([-2], "INT64")
    sign = build.op("ReduceSum", build.multiply(planes, weights), axes, keepdims=0)
    vectors = build.add(
        build.multiply(frame.looked_up("patterns", pattern), frame.looked_up("factors", sign)),
        build.reshape(frame.looked_up("shifts", sign), *grid, 4, 1),
    )
    # From the bottom of a word: (row 0, column 0), (1, 0), (0, 1), (1, 1).
    apart = build.reshape(vectors, *grid, 2, 2, e8p.LANES)
    values = build.reshape(build.transpose(apart, 0, 2, 5, 1, 3, 4, 6), outputs, inputs)
    values = _rotated_across(frame, values, outputs, inputs, inputs)
    values = build.multiply(values, frame.real("SU"))
    values = _rotated_down(frame, values, outputs, inputs, outputs)
    return build.multiply(values, frame.real_as("SV", outputs, 1))


def _side(frame: Frame, factors: str, signs: str, length: int) -> Tensor:
    """The vector of one side: factors, or -1 for each bit that is set."""
    if factors in frame:
        return frame.real(factors)
    build = frame.build
    bits = build.stream(frame.unsigned(signs), 1, length, (), length // 16)
    return build.add(build.multiply(build.cast(bits, "FLOAT"), -2), 1)


def _rotated_across(frame: Frame, values: Tensor, rows: int, columns: int, size: int) -> Tensor:
    runs = rotated(frame, values, rows * columns // size, size)
    return frame.build.reshape(runs, rows, columns)


def _rotated_down(frame: Frame, values: Tensor, rows: int, columns: int, size: int) -> Tensor:
    turned = _rotated_across(frame, frame.build.transpose(values, 1, 0), columns, rows, size)
    return frame.build.transpose(turned, 1, 0)


def _numbers(_params: Params, given: Given) -> Mapping[str, Array]:
    return {"numbers": trellis.values("mcg" if "mcg" in given else "mul1" if "mul1" in given else "3inst")}


def _e8p(_params: Params, _given: Given) -> Mapping[str, Array]:
    factors, shifts = e8p.signs()
    return {"patterns": e8p.patterns(), "factors": factors, "shifts": shifts}


LATTICE: Final[Mapping[str, Recipe]] = {
    "exl2": Recipe(exl2),
    "exl3": Recipe(exl3, _numbers, parts=("suh", "svh")),
    "quip_sharp_e8p": Recipe(quip_sharp_e8p, _e8p),
}
