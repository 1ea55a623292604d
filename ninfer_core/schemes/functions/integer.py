"""Decoders of integer codes in groups, as GPTQ, AWQ, HQQ, compressed-tensors, MatMulNBits and ONNX store them."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from ninfer_core.schemes.form import Params
from ninfer_core.schemes.functions.build import Tensor
from ninfer_core.schemes.functions.frame import Frame, NotDecodable, Recipe
from ninfer_core.schemes.integer.awq import COLUMNS
from ninfer_core.schemes.integer.groups import group_size_of


def gptq(offset: int, frame: Frame) -> Tensor:
    """scale x (code - zero) with zero = (stored + offset) mod 2^bits."""
    build, bits, (inputs, outputs) = frame.build, frame.params["bits"], frame.shape
    words = build.transpose(frame.unsigned("qweight"), 1, 0)
    streams = build.stream(words, bits, inputs, (outputs,), inputs * bits // 32)
    groups = frame.shape_of("scales")[0]
    zeros = build.stream(frame.unsigned("qzeros"), bits, outputs, (groups,), outputs * bits // 32)
    if offset:
        zeros = build.mask(build.add(zeros, offset), (1 << bits) - 1)
    wide = [_by_input(frame, groups, x) for x in (zeros, frame["scales"])]
    return _affine(frame, build.transpose(streams, 1, 0), *wide)


def awq(frame: Frame) -> Tensor:
    """scale x (code - zero), the columns of a word interleaved."""
    inputs, outputs = frame.shape
    groups = frame.shape_of("scales")[0]
    zeros = _interleaved(frame, "qzeros", groups, outputs)
    wide = [_by_input(frame, groups, x) for x in (zeros, frame["scales"])]
    return _affine(frame, _interleaved(frame, "qweight", inputs, outputs), *wide)


def awq_gemv(frame: Frame) -> Tensor:
    """scale x (code - zero), packed along the inputs in plain order; words behind the last group are padding."""
    build, (outputs, inputs) = frame.build, frame.shape
    size = group_size_of("awq", inputs, frame.params)
    groups, width = inputs // size, frame.shape_of("qzeros")[1]
    codes = build.stream(frame.unsigned("qweight"), 4, inputs, (outputs,), inputs // 8)
    zeros = build.stream(frame.unsigned("qzeros"), 4, groups, (outputs,), width)
    scales = build.cut(frame["scales"], 1, 0, groups)
    shape = (outputs, groups)
    wide = [frame.repeated(x, shape, 1, size, inputs) for x in (zeros, scales)]
    return _affine(frame, codes, *wide)


def ct_pack_quantized(frame: Frame) -> Tensor:
    """scale x (code - zero), an absent zero point being 2^(bits-1)."""
    build, bits, (outputs, inputs) = frame.build, frame.params["bits"], frame.shape
    size = group_size_of("ct_pack_quantized", inputs, frame.params)
    groups = frame.shape_of("weight_scale")[1]
    codes = build.stream(
        frame.unsigned("weight_packed"), bits, inputs, (outputs,), frame.shape_of("weight_packed")[1]
    )
    scales = frame.repeated(frame["weight_scale"], (outputs, groups), 1, size, inputs)
    if "weight_zero_point" not in frame:
        return _affine(frame, codes, build.constant(1 << bits - 1, "INT32"), scales)
    words = build.transpose(frame.unsigned("weight_zero_point"), 1, 0)
    zeros = build.stream(words, bits, outputs, (groups,), frame.shape_of("weight_zero_point")[0])
    wide = frame.repeated(build.transpose(zeros, 1, 0), (outputs, groups), 1, size, inputs)
    return _affine(frame, codes, wide, scales)


def hqq(frame: Frame) -> Tensor:
    """(code - zero) x scale; slab 0 of the code matrix sits highest in the words."""
    build, bits = frame.build, frame.params["bits"]
    packed_rows, columns = frame.shape_of("W_q")
    slabs = 10 if bits == 3 else 8 // bits
    words = build.reshape(frame.unsigned("W_q"), 1, packed_rows, columns)
    lows = [[[bits * (slabs - 1 - slab)]] for slab in range(slabs)]
    cut = build.mask(build.right(words, build.constant(lows, words.element)), (1 << bits) - 1)
    rows = math.prod(frame.shape) // columns
    codes = build.reshape(cut, slabs * packed_rows, columns)
    if rows != slabs * packed_rows:
        codes = build.cut(codes, 0, 0, rows)
    return build.multiply(build.subtract(build.cast(codes, "FLOAT"), frame.real("zero")), frame.real("scale"))


def matmulnbits(frame: Frame) -> Tensor:
    """(code - zero) x scale; inputs behind the last one are padding of its block."""
    build, bits, size = frame.build, frame.params["bits"], frame.params["block_size"]
    outputs, inputs = frame.shape
    _, blocks, width = frame.shape_of("B")
    codes = build.stream(frame["B"], bits, size, (outputs, blocks), width)
    scales = build.reshape(frame["scales"], outputs, blocks, 1)
    if "zero_points" not in frame:
        values = _affine(frame, codes, build.constant(1 << bits - 1, "INT32"), scales)
    elif (frame.params["zero_points"] == "packed") is not (frame["zero_points"].element == "UINT8"):
        raise NotDecodable(f"{frame.params['zero_points']} zero points of {frame['zero_points'].element}")
    elif frame.params["zero_points"] == "packed":
        packed_width = -(-blocks * bits // 8)
        packed = build.reshape(frame["zero_points"], outputs, packed_width)
        zeros = build.stream(packed, bits, blocks, (outputs,), packed_width)
        values = _affine(frame, codes, build.reshape(zeros, outputs, blocks, 1), scales)
    else:
        zeros = frame.real_as("zero_points", outputs, blocks, 1)
        centred = build.subtract(build.cast(codes, "FLOAT"), zeros)
        values = build.multiply(centred, build.cast(scales, "FLOAT"))
    flat = build.reshape(values, outputs, blocks * size)
    return flat if inputs == blocks * size else build.cut(flat, 1, 0, inputs)


def linear_onnx(frame: Frame) -> Tensor:
    """(code - zero point) x scale, two's complement where the type is signed (R4)."""
    build, shape, type_ = frame.build, frame.shape, frame.params["type"]
    bits = int(type_.lstrip("uint"))
    count = math.prod(shape)
    codes = build.stream(frame["payload"], bits, count, (), frame.shape_of("payload")[0])
    if type_[0] == "u":
        numbers = build.cast(codes, "INT32")
    else:  # flipping the top bit adds half of the range, modulo all of it
        half = 1 << bits - 1
        flipped = build.op("BitwiseXor", codes, build.constant(half, codes.element))
        numbers = build.subtract(build.cast(flipped, "INT32"), half)
    numbers = build.reshape(numbers, *shape)
    if "zero_point" in frame:
        zeros = build.cast(frame["zero_point"], "INT32")
        numbers = build.subtract(numbers, _spread(frame, zeros))
    return build.multiply(build.cast(numbers, "FLOAT"), _spread(frame, frame.real("scale")))


def _spread(frame: Frame, x: Tensor) -> Tensor:
    """Numbers of a scale's shape, so that they broadcast to the values."""
    build, shape = frame.build, frame.shape
    axis, block = frame.params["axis"], frame.params["block_size"]
    if axis is None:
        return build.reshape(x, *(1 for _ in shape))
    axis %= len(shape)
    if not block:
        return build.reshape(x, *(n if at == axis else 1 for at, n in enumerate(shape)))
    return frame.repeated(x, frame.shape_of("scale"), axis, min(block, shape[axis]), shape[axis])


def _interleaved(frame: Frame, part: str, rows: int, outputs: int) -> Tensor:
    """AWQ's words [rows, N/8] to codes [rows, N] in the order of the columns."""
    build = frame.build
    codes = build.stream(frame.unsigned(part), 4, outputs, (rows,), outputs // 8)
    eights = build.reshape(codes, rows, outputs // 8, 8)
    nibble_of_column = build.constant(np.argsort(COLUMNS), "INT64")
    return build.reshape(build.gather(eights, nibble_of_column, 2), rows, outputs)


def _by_input(frame: Frame, groups: int, x: Tensor) -> Tensor:
    """Numbers of groups [groups, N] for each input channel [K, N]."""
    if "g_idx" in frame:
        return frame.build.gather(x, frame["g_idx"])
    inputs, outputs = frame.shape
    size = group_size_of("groups", inputs, frame.params)
    return frame.repeated(x, (groups, outputs), 0, size, inputs)


def _affine(frame: Frame, codes: Tensor, zeros: Tensor, scales: Tensor) -> Tensor:
    """scale x (code - zero): the difference exact, one rounding."""
    build = frame.build
    centred = build.subtract(build.cast(codes, "INT32"), build.cast(zeros, "INT32"))
    return build.multiply(build.cast(centred, "FLOAT"), build.cast(scales, "FLOAT"))


def _hqq_types(params: Params) -> Mapping[str, str]:
    return {"W_q": "INT32" if params["bits"] == 3 else "UINT8"}


INTEGER: Final[Mapping[str, Recipe]] = {
    "gptq": Recipe(partial(gptq, 1), parts=("g_idx",)),
    "gptq_v2": Recipe(partial(gptq, 0), parts=("g_idx",)),
    "awq": Recipe(awq),
    "awq_gemv": Recipe(awq_gemv),
    "ct_pack_quantized": Recipe(ct_pack_quantized),
    "hqq": Recipe(hqq, types=_hqq_types),
    "matmulnbits": Recipe(matmulnbits),
    "linear_onnx": Recipe(linear_onnx),
}
