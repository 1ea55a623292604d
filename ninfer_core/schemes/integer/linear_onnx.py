"""ONNX initializers read by DequantizeLinear (scheme page 5.1): one scale, one for each slice, or one for each block."""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from ninfer_core.findings import Findings
from ninfer_core.schemes.bits import codes_of, signed, words_of
from ninfer_core.schemes.faults import report, report_not_finite
from ninfer_core.schemes.form import (
    Array,
    Form,
    Parameter,
    Params,
    Part,
    Parts,
    Shape,
    Slice,
    Values,
    stream_word,
)
from ninfer_core.schemes.integer.groups import SCALES, grid, one_nan, report_padding
from ninfer_core.schemes.run import Refusal, refuse_parameter

_NAME = "linear_onnx"
TYPES: Final = ("int8", "uint8", "int4", "uint4", "int2", "uint2")


def _bits(params: Params) -> int:
    return int(params["type"].lstrip("uint"))


def _range(params: Params) -> range:
    """The numbers of the stored type."""
    bits = _bits(params)
    return range(1 << bits) if params["type"][0] == "u" else range(-(1 << bits - 1), 1 << bits - 1)


def _axis(shape: Shape, params: Params) -> int | None:
    """The axis of the scales, None for a single one. Raises: SchemeRefused for one that the shape does not have."""
    axis: int | None = params["axis"]
    if axis is None:
        if params["block_size"]:
            raise refuse_parameter(_NAME, "axis", "needed beside a block size", "absent")
        return None
    if not -len(shape) <= axis < len(shape):
        raise refuse_parameter(_NAME, "axis", f"one of the {len(shape)} dimensions", axis)
    return axis % len(shape)


def _scale_shape(shape: Shape, params: Params) -> Shape:
    axis, block = _axis(shape, params), params["block_size"]
    if block < 0:
        raise refuse_parameter(_NAME, "block_size", "a positive number, or 0 for none", block)
    if axis is None:
        return (1,)
    if not block:
        return (shape[axis],)
    return (*shape[:axis], -(-shape[axis] // block), *shape[axis + 1 :])


def stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    """The shapes of the parts. Raises: SchemeRefused."""
    scales = _scale_shape(shape, params)
    return {
        "payload": (-(-math.prod(shape) * _bits(params) // 8),),
        "scale": scales,
        "zero_point": scales,
    }


def _spread(scales: Array, shape: Shape, params: Params) -> Array:
    """Numbers of a scale's shape, so that they broadcast to the values."""
    axis, block = _axis(shape, params), params["block_size"]
    if axis is None:
        return scales.reshape((1,) * len(shape)) if shape else scales.reshape(())
    if not block:
        return scales.reshape([-1 if n == axis else 1 for n in range(len(shape))])
    return np.repeat(scales, min(block, shape[axis]), axis=axis).take(np.arange(shape[axis]), axis=axis)


def _numbers(parts: Parts, shape: Shape, params: Params) -> Array:
    """The stored integers, two's complement where the type is signed (R4)."""
    bits = _bits(params)
    codes = codes_of(parts["payload"], bits, math.prod(shape)).reshape(shape)
    return codes if params["type"][0] == "u" else signed(codes, bits)


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """(code - zero point) x scale. Raises: SchemeRefused for a zero point that the stored type does not have."""
    numbers = _numbers(parts, shape, params).astype(np.int32)
    if "zero_point" in parts:
        refusal = Refusal(_NAME)
        _check_zeros(parts, params, refusal.findings)
        refusal.settle()
        numbers -= _spread(parts["zero_point"].astype(np.int32), shape, params)
    scales = _spread(parts["scale"].astype(np.float32), shape, params)
    return one_nan(np.asarray(numbers.astype(np.float32) * scales, np.float32), scales)


def _check_zeros(parts: Parts, params: Params, findings: Findings) -> None:
    if "zero_point" not in parts:
        return
    legal, zeros = _range(params), parts["zero_point"]
    wrong = (zeros < legal.start) | (zeros >= legal.stop)
    expected = f"{legal.start} to {legal.stop - 1}"
    report(
        findings, "zero_point_out_of_range", "zero_point", wrong, zeros, f"is no {params['type']}", expected
    )


def _rules(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    report_not_finite(findings, "scale_not_finite", "scale", parts["scale"])
    _check_zeros(parts, params, findings)
    report_padding(findings, "payload", parts["payload"], _bits(params), math.prod(shape))


def encode(values: Values, params: Params) -> dict[str, Array]:
    """Rounds to the grid of each scale: signed types symmetric around 0, unsigned ones with zero points.

    Raises: CannotEncode.
    """
    shape, bits = values.shape, _bits(params)
    axis, block = _axis(shape, params), params["block_size"]
    if axis is None:
        groups, last = values.reshape(1, -1), values.shape
    else:
        moved = np.moveaxis(values, axis, -1 if block else 0)
        if block:
            block = max(1, min(block, moved.shape[-1]))
            behind = -moved.shape[-1] % block
            # The edge value repeated changes neither the span of the last block nor any other code.
            widths = [(0, 0)] * (moved.ndim - 1) + [(0, behind)]
            moved = np.pad(moved, widths, mode="edge") if moved.size else np.pad(moved, widths)
            groups = moved.reshape(*moved.shape[:-1], moved.shape[-1] // block, block)
        else:
            groups = moved.reshape(moved.shape[0], math.prod(moved.shape[1:]))
        last = moved.shape
    symmetric = params["type"][0] != "u"
    made = grid(groups, bits, symmetric, np.float32)
    codes, scales, zeros = made.codes.reshape(last), made.scales, made.zeros
    if axis is not None and block:
        codes = np.moveaxis(codes[..., : shape[axis]], -1, axis)
        scales, zeros = np.moveaxis(scales, -1, axis), np.moveaxis(zeros, -1, axis)
    elif axis is not None:
        codes = np.moveaxis(codes, 0, axis)
    if symmetric:  # code 2^(bits-1) of the grid is the number 0: two's complement flips the top bit
        codes = codes ^ codes.dtype.type(1 << bits - 1)
    parts: dict[str, Any] = {"payload": words_of(codes.reshape(-1), bits), "scale": scales}
    if not symmetric:
        parts["zero_point"] = zeros.astype(np.int64)
    return parts


def word(params: Params) -> tuple[Slice, ...]:
    """The codes of one byte."""
    return stream_word("i+", _bits(params), 8)


LINEAR_ONNX = Form(
    _NAME,
    "file",
    "an ONNX integer initializer with the scale and zero point of DequantizeLinear",
    ("values",),
    (
        Part(
            "payload", ("uint8",), "[ceil(values*bits/8)]", "the initializer's raw data, first value lowest"
        ),
        Part("scale", SCALES, "[1], [D] or D/block_size along the axis", "what a step of the codes is worth"),
        Part(
            "zero_point",
            ("int64", "int32", "int8", "uint8"),
            "as scale",
            "the code of 0; absent, 0",
            optional=True,
        ),
    ),
    (
        Parameter("type", "text", "the element type of the initializer", choices=TYPES),
        Parameter(
            "axis", "integer", "the dimension that has several scales; absent for one scale", default=None
        ),
        Parameter("block_size", "integer", "values along the axis that share a scale; 0 for all", default=0),
    ),
    stored,
    decode,
    "onnxruntime 1.32.0 DequantizeLinear and the onnx 1.23.2 reference evaluator",
    rules=(_rules,),
    encode=encode,
    encoding="plain",
    word=word,
)
