"""Decoders of small floats and of tables: FP8, MX, NVFP4, FP6-LLM, bitsandbytes.

Four- and six-bit floats are unsigned codes that look up a constant table, because not every runtime has those types.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from ninfer_core.schemes import small_floats
from ninfer_core.schemes.floating.fp6_llm import HIGH_ORDER, LOW_ORDER
from ninfer_core.schemes.floating.nvfp4 import CT, MODELOPT, Nvfp4
from ninfer_core.schemes.form import Array, Params
from ninfer_core.schemes.functions.build import Tensor
from ninfer_core.schemes.functions.frame import Frame, Given, Recipe
from ninfer_core.schemes.integer.tables import FP4_TABLE, NF4_TABLE
from ninfer_core.schemes.small_floats import SmallFloat

_MX_BLOCK: Final = 32
_NVFP4_BLOCK: Final = 16
_LANES: Final = 32


def fp8(frame: Frame) -> Tensor:
    """The code's value times its scale."""
    build, shape = frame.build, frame.shape
    scales, axis, block = frame.real("scale"), frame.params["axis"], frame.params["block_shape"]
    if block is None:
        lengths = [n if at == axis else 1 for at, n in enumerate(shape)]
        return build.multiply(frame.real("payload"), build.reshape(scales, *lengths))
    grid = list(frame.shape_of("scale"))
    for at, (run, length) in enumerate(zip(block, shape, strict=True)):
        scales = frame.repeated(scales, grid, at, run or max(length, 1), length)
        grid[at] = length
    return build.multiply(frame.real("payload"), scales)


def mx(element: SmallFloat, frame: Frame) -> Tensor:
    """Element times 2**(e - 127), NaN throughout the block where e is 255."""
    build, packed = frame.build, frame["weight_packed"]
    count = math.prod(frame.shape)
    blocks = count // _MX_BLOCK
    if frame.params["layout"] == "bytes":
        codes = build.mask(build.reshape(packed, blocks, _MX_BLOCK), (1 << element.bits) - 1)
    else:
        width = _MX_BLOCK * element.bits // 8
        rows = build.reshape(packed, blocks, width)
        codes = build.stream(rows, element.bits, _MX_BLOCK, (blocks,), width)
    return build.multiply(frame.looked_up("levels", codes), frame.real_as("weight_scale", blocks, 1))


def nvfp4(names: Nvfp4, frame: Frame) -> Tensor:
    """Product or quotient of the scales first, then times the element (R16)."""
    build = frame.build
    blocks, width = math.prod(frame.shape) // _NVFP4_BLOCK, _NVFP4_BLOCK // 2
    rows = build.reshape(frame[names.packed], blocks, width)
    levels = frame.looked_up("levels", build.stream(rows, 4, _NVFP4_BLOCK, (blocks,), width))
    first, second = frame.real_as(names.block_scale, blocks, 1), frame.real(names.tensor_scale)
    return build.multiply(
        levels, build.divide(first, second) if names.divides else build.multiply(first, second)
    )


def fp6_llm(frame: Frame) -> Tensor:
    """The E3M2 value times the scale of its row; two regions hold the high and the low bits in the lanes' order."""
    build, (rows, columns) = frame.build, frame.shape
    count = rows * columns
    blocks = count // 256
    high_bytes = build.cut(frame["prepacked"], 0, 0, count // 4)
    low_bytes = build.cut(frame["prepacked"], 0, count // 4, count // 4 * 3)
    high = _reordered(frame, high_bytes, count, HIGH_ORDER)
    pairs = build.transpose(build.reshape(high, blocks // 2, _LANES, 2, 8), 0, 2, 1, 3)
    low = build.reshape(_reordered(frame, low_bytes, count, LOW_ORDER), blocks, _LANES, 8)
    lanes = build.either(build.left(build.reshape(pairs, blocks, _LANES, 8), 4), low)
    split = build.reshape(lanes, rows // 64, columns // 16, 4, 8, 4, 2, 2, 2)
    codes = build.reshape(build.transpose(split, 0, 2, 6, 3, 1, 5, 4, 7), rows, columns)
    return build.multiply(frame.looked_up("levels", codes), frame.real_as("scales", rows, 1))


def _reordered(frame: Frame, packed: Tensor, count: int, order: tuple[int, ...]) -> Tensor:
    """The elements of words in their own order: `order` names, from a word's top down, which of them sits there."""
    build, per_word = frame.build, len(order)
    bits = 32 // per_word
    width = count * bits // 8
    words = build.reshape(build.stream(packed, bits, count, (), width), count // per_word, per_word)
    from_bottom = build.constant(per_word - 1 - np.argsort(order), "INT64")
    return build.gather(words, from_bottom, 1)


def bitsandbytes(frame: Frame) -> Tensor:
    """table[code] x absmax; nested scales are nested_code[u8] x nested_absmax + offset."""
    build, params, count = frame.build, frame.params, math.prod(frame.shape)
    order = (4, 0) if params["first_nibble"] == "high" else (0, 4)
    packed = frame.shape_of("payload")[0]
    pairs = build.reshape(build.fields(frame["payload"], order, 4, (packed,)), 2 * packed)
    codes = pairs if count == 2 * packed else build.cut(pairs, 0, 0, count)
    if "absmax" in frame:
        scales, blocks = frame.real("absmax"), frame.shape_of("absmax")[0]
    else:
        blocks, outer = frame.shape_of("absmax_u8")[0], frame.shape_of("nested_absmax")[0]
        inner = min(params["nested_block_size"], blocks)
        wide = frame.repeated(frame["nested_absmax"], (outer,), 0, inner, blocks)
        product = build.multiply(frame.looked_up("nested_code", frame["absmax_u8"]), wide)
        scales = build.add(product, frame["offset"])
    each = frame.repeated(scales, (blocks,), 0, min(params["block_size"], count), count)
    return build.multiply(frame.looked_up("code", codes), each)


def _levels(element: SmallFloat, _params: Params, _given: Given) -> Mapping[str, Array]:
    return {"levels": small_floats.decode(element, np.arange(1 << element.bits))}


def _nvfp4_levels(names: Nvfp4, _params: Params, _given: Given) -> Mapping[str, Array]:
    return {"levels": names.table}


def _published(table: Array, _params: Params, given: Given) -> Mapping[str, Array]:
    return {} if "code" in given else {"code": table}


def _fp8_types(params: Params) -> Mapping[str, str]:
    return {"payload": f"FLOAT8{params['dialect'].upper()}"}


def _mx(element: SmallFloat) -> Recipe:
    return Recipe(partial(mx, element), partial(_levels, element))


def _nvfp4(names: Nvfp4) -> Recipe:
    return Recipe(partial(nvfp4, names), partial(_nvfp4_levels, names))


FLOATING: Final[Mapping[str, Recipe]] = {
    "fp8": Recipe(fp8, types=_fp8_types),
    "mxfp4": _mx(small_floats.E2M1),
    "mxfp6_e3m2": _mx(small_floats.E3M2),
    "mxfp6_e2m3": _mx(small_floats.E2M3),
    CT.name: _nvfp4(CT),
    MODELOPT.name: _nvfp4(MODELOPT),
    "fp6_llm": Recipe(fp6_llm, partial(_levels, small_floats.E3M2)),
    "bnb_nf4": Recipe(bitsandbytes, partial(_published, NF4_TABLE), parts=("absmax",)),
    "bnb_fp4": Recipe(bitsandbytes, partial(_published, FP4_TABLE), parts=("absmax",)),
}
