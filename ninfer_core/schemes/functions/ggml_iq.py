"""Decoders of the GGML types with codebooks; their grids and sign codes are constants of the struct type."""

from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from ninfer_core.schemes.form import Array, Params
from ninfer_core.schemes.functions.build import BIT_CASTS, Tensor
from ninfer_core.schemes.functions.frame import Frame, Given, Recipe
from ninfer_core.schemes.functions.ggml_pieces import bits, blocks, column, in_turn
from ninfer_core.schemes.ggml.pieces import even_signs
from ninfer_core.schemes.ggml.tables import grid


def iq2_xxs(frame: Frame) -> Tensor:
    """d (0.5 + s) / 4 times an entry of eight, with signs of seven bits, four times under one word."""
    build, n = frame.build, blocks(frame)
    word = frame["signs_scale"]  # [n, 8]
    signs = frame.looked_up("signs7", build.fields(word, range(0, 28, 7), 7, (n, 8)))
    steps = _steps(frame, build.right(word, 28), 0.25)
    return _signed(frame, steps, frame.looked_up("grid", frame["indices"]), signs, 8)


def iq2_xs(frame: Frame) -> Tensor:
    """As IQ2_XXS with nine bits of index beside the signs, and a scale for each sixteen."""
    build, n = frame.build, blocks(frame)
    words = frame["qs"]
    signs = frame.looked_up("signs7", build.right(words, 9))
    steps = _steps(frame, in_turn(build, frame["scales"], n, 8), 0.25)
    return _signed(frame, steps, frame.looked_up("grid", build.mask(words, 511)), signs, 16)


def iq2_s(frame: Frame) -> Tensor:
    """As IQ2_XS with ten bits of index and eight plain signs."""
    build, n = frame.build, blocks(frame)
    high = build.reshape(build.fields(frame["qh"], range(0, 8, 2), 2, (n, 8)), n, 32)
    steps = _steps(frame, in_turn(build, frame["scales"], n, 8), 0.25)
    entries = frame.looked_up("grid", _index(frame, high))
    return _signed(frame, steps, entries, _plain_signs(frame), 16)


def iq3_xxs(frame: Frame) -> Tensor:
    """d (0.5 + s) / 2 times entries of four, with signs of seven bits for each eight."""
    build, n = frame.build, blocks(frame)
    word = frame["signs_scales"]  # [n, 8]
    signs = frame.looked_up("signs7", build.fields(word, range(0, 28, 7), 7, (n, 8)))
    steps = _steps(frame, build.right(word, 28), 0.5)
    return _signed(frame, steps, frame.looked_up("grid", frame["qs"]), signs, 8)


def iq3_s(frame: Frame) -> Tensor:
    """d (1 + 2 s) times entries of four, with a ninth bit of index and plain signs."""
    build, n = frame.build, blocks(frame)
    high = bits(build, frame["qh"], n, 8)
    steps = build.multiply(column(frame, "d"), _odd(frame, in_turn(build, frame["scales"], n, 4)))
    entries = frame.looked_up("grid", _index(frame, high))
    return _signed(frame, steps, entries, _plain_signs(frame), 8)


def iq1_s(frame: Frame) -> Tensor:
    """d (2 s + 1) (entry + delta), delta an eighth with one sign for each 32."""
    build, n = frame.build, blocks(frame)
    word = frame["qh"]  # [n, 8]
    high = build.cast(build.reshape(build.fields(word, range(0, 12, 3), 3, (n, 8)), n, 32), "UINT8")
    steps = build.multiply(column(frame, "d"), _odd(frame, build.field(word, 12, 3)))
    delta = _delta(frame, build.right(word, 15), n, 8)
    return _shifted(frame, steps, _index(frame, high), delta, 8)


def iq1_m(frame: Frame) -> Tensor:
    """As IQ1_S with a scale for each sixteen and a sign of delta for each eight; d lies in four words of scales."""
    build, n = frame.build, blocks(frame)
    nibble = in_turn(build, frame["qh"], n, 16)  # [n, 32]
    scales = frame["scales"]  # [n, 4]
    tops = build.left(build.right(scales, 12), range(0, 16, 4))
    joined = build.cut(tops, 1, 0, 1)
    for k in range(1, 4):
        joined = build.either(joined, build.cut(tops, 1, k, k + 1))
    half = build.bit_cast(joined, "FLOAT16")
    odd = _odd(frame, build.reshape(build.fields(scales, range(0, 12, 3), 3, (n, 4)), n, 16))
    steps = build.multiply(build.cast(half, "FLOAT"), odd)
    delta = _delta(frame, build.right(nibble, 3), n, 32)
    return _shifted(frame, steps, _index(frame, build.mask(nibble, 7)), delta, 16)


def _index(frame: Frame, high: Tensor) -> Tensor:
    """The bytes `qs` with more bits on top of them."""
    build = frame.build
    return build.either(build.cast(frame["qs"], "UINT16"), build.left(build.cast(high, "UINT16"), 8))


def _odd(frame: Frame, scales: Tensor) -> Tensor:
    """2 s + 1 as FLOAT, exact."""
    build = frame.build
    return build.add(build.multiply(build.cast(scales, "FLOAT"), 2), 1)


def _steps(frame: Frame, scales: Tensor, part: float) -> Tensor:
    """d (0.5 + scale) times a power of two, rounded after each product."""
    build = frame.build
    lifted = build.add(build.cast(scales, "FLOAT"), 0.5)
    return build.multiply(build.multiply(column(frame, "d"), lifted), part)


def _plain_signs(frame: Frame) -> Tensor:
    """The bytes `signs` as +1 and -1: a set bit negates."""
    build, n = frame.build, blocks(frame)
    negative = build.cast(bits(build, frame["signs"], n, 32), "FLOAT")
    return build.add(build.multiply(negative, -2), 1)


def _delta(frame: Frame, negative: Tensor, n: int, count: int) -> Tensor:
    """-1/8 where a bit is set and +1/8 elsewhere: [n, 32, 1], one for each entry."""
    build = frame.build
    sign = build.equal(build.cast(negative, "INT32"), 1)
    delta = build.where(sign, build.constant(-0.125, "FLOAT"), build.constant(0.125, "FLOAT"))
    wide = build.expand(build.reshape(delta, n, count, 1), n, count, 32 // count)
    return build.reshape(wide, n, 32, 1)


def _signed(frame: Frame, steps: Tensor, entries: Tensor, signs: Tensor, count: int) -> Tensor:
    build, n = frame.build, blocks(frame)
    parts = build.reshape(entries, n, count, 256 // count)
    magnitudes = build.multiply(build.reshape(steps, n, count, 1), parts)
    return build.multiply(build.reshape(magnitudes, n, 256), build.reshape(signs, n, 256))


def _shifted(frame: Frame, steps: Tensor, indices: Tensor, delta: Tensor, count: int) -> Tensor:
    build, n = frame.build, blocks(frame)
    entries = build.add(frame.looked_up("grid", indices), delta)
    parts = build.reshape(entries, n, count, 256 // count)
    return build.multiply(build.reshape(steps, n, count, 1), parts)


def _grid(name: str, _params: Params, _given: Given) -> Mapping[str, Array]:
    return {"grid": grid(name)}


def _grid_and_signs(name: str, params: Params, given: Given) -> Mapping[str, Array]:
    return {**_grid(name, params, given), "signs7": even_signs(np.arange(128)).astype(np.int8)}


GGML_IQ: Final[Mapping[str, Recipe]] = {
    "ggml_iq2_xxs": Recipe(iq2_xxs, partial(_grid_and_signs, "iq2_xxs")),
    "ggml_iq2_xs": Recipe(iq2_xs, partial(_grid_and_signs, "iq2_xs")),
    "ggml_iq2_s": Recipe(iq2_s, partial(_grid, "iq2_s")),
    "ggml_iq3_xxs": Recipe(iq3_xxs, partial(_grid_and_signs, "iq3_xxs")),
    "ggml_iq3_s": Recipe(iq3_s, partial(_grid, "iq3_s")),
    "ggml_iq1_s": Recipe(iq1_s, partial(_grid, "iq1_s")),
    "ggml_iq1_m": Recipe(iq1_m, partial(_grid, "iq1_s"), opset=BIT_CASTS),
}
