"""EETQ: int8 weights in the order of tensor cores, one binary16 scale for each output."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.form import Array, Form, Params, Part, Parts, Shape, Slice, Values
from ninfer_core.schemes.run import CannotEncode, refuse_shape
from ninfer_core.schemes.scales import (
    binary32,
    divided,
    finite_source,
    half_away,
    largest,
    sound_scales,
)

_NAME: Final = "eetq"
_RUN: Final = 64  # inputs of one column before those of its neighbour
_SIXTEEN: Final = 16
# Which input of sixteen has each place, and then bytes 1 and 2 of every four exchanged (5.22).
ORDER: Final = (
    np.array((0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15))
    .reshape(4, 4)[:, [0, 2, 1, 3]]
    .reshape(-1)
)
_BIAS: Final = np.uint8(128)

Codes = NDArray[np.int8]


def _stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    if len(shape) != 2 or shape[0] % _RUN or shape[1] % 2:
        raise refuse_shape(_NAME, shape, f"[in, out], inputs in whole runs of {_RUN} and outputs in pairs")
    return {"qweight": shape, "weight_scales": (shape[1],)}


def _infer(stored: Mapping[str, Shape], params: Params) -> Shape:
    if len(stored.get("qweight", ())) != 2:
        raise refuse_shape(_NAME, stored.get("qweight", ()), "qweight [in, out]")
    return stored["qweight"]


def unpack(stored: Codes, shape: Shape) -> Codes:
    """The codes [in, out] of bytes in the tool's order."""
    inputs, outputs = shape
    runs = (outputs // 2, inputs // _RUN, 2, _RUN // _SIXTEEN, _SIXTEEN)
    biased = np.ascontiguousarray(stored).view(np.uint8).reshape(runs)
    ordered = np.empty_like(biased)
    ordered[..., ORDER] = biased
    plain = ordered.transpose(1, 3, 4, 0, 2).reshape(shape)
    return (plain ^ _BIAS).view(np.int8)  # minus 128, modulo 256


def pack(codes: Codes) -> Codes:
    """The bytes in the tool's order of codes [in, out]."""
    inputs, outputs = codes.shape
    biased = np.ascontiguousarray(codes).view(np.uint8) ^ _BIAS
    pairs = biased.reshape(inputs // _RUN, _RUN // _SIXTEEN, _SIXTEEN, outputs // 2, 2)
    runs = pairs.transpose(3, 0, 4, 1, 2)
    return np.ascontiguousarray(runs[..., ORDER]).reshape(codes.shape).view(np.int8)


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """Code times the scale of its output, in binary32 (5.22)."""
    scaled: Values = unpack(parts["qweight"], shape).astype(np.float32) * binary32(parts["weight_scales"])
    return scaled


def encode(values: Values, params: Params) -> dict[str, Array]:
    """The scale is the largest magnitude of an output over 128; codes round half away from zero, clipped to int8.

    The quotient takes the scale before it is rounded to binary16, as the tool does. Raises: CannotEncode for values
    that are not finite, or an output whose scale is beyond binary16.
    """
    scales = largest(finite_source(_NAME, values), 0) / np.float32(128)
    stored = scales.astype(np.float16)
    if not np.isfinite(stored).all():
        raise CannotEncode(f"{_NAME} stores scales as binary16, and an output's largest magnitude needs more")
    quotients = divided(values, np.broadcast_to(scales, values.shape))
    codes = np.clip(half_away(quotients), -128, 127).astype(np.int8)
    return {"qweight": pack(codes), "weight_scales": stored[0]}


def _word(params: Params) -> tuple[Slice, ...]:
    return (Slice("code + 128", 8),)


EETQ: Final = Form(
    name=_NAME,
    kind="file",
    summary="Eight-bit integers in the order that tensor cores load them, one binary16 scale for each output.",
    axes=("in", "out"),
    parts=(
        Part(
            "qweight", ("int8",), "[I, O]", "codes plus 128, inputs permuted and pairs of outputs interleaved"
        ),
        Part("weight_scales", ("float16",), "[O]", "the factor of each output"),
    ),
    parameters=(),
    stored=_stored,
    decode=decode,
    infer=_infer,
    rules=(sound_scales("weight_scales"),),
    encode=encode,
    encoding="canonical",
    oracle="the public source's preprocessing functions, compiled for the host",
    word=_word,
    notes="The order is that of compute capability 7.5 to 8.x. The catalogue has one scale for all outputs.",
)
