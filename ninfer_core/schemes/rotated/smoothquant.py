"""SmoothQuant: int8 weights with a scale for each output, their inputs smoothed by factors that are seldom stored."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from ninfer_core.schemes.form import Array, Form, Parameter, Params, Part, Parts, Shape, Values
from ninfer_core.schemes.run import refuse_parameter, refuse_shape
from ninfer_core.schemes.scales import (
    FLOATS,
    binary32,
    divided,
    finite_source,
    largest,
    sound_divisors,
    sound_scales,
)

_NAME: Final = "smoothquant"


def _stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    if len(shape) != 2:
        raise refuse_shape(_NAME, shape, "[out, in]")
    return {"weight": shape, "weight_scale": (shape[0],), "smooth": (shape[1],)}


def _infer(stored: Mapping[str, Shape], params: Params) -> Shape:
    if len(stored.get("weight", ())) != 2:
        raise refuse_shape(_NAME, stored.get("weight", ()), "weight [out, in]")
    return stored["weight"]


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """Code times the scale of its output, over the factor of its input where factors are stored (R11; 5.24)."""
    scaled: Values = parts["weight"].astype(np.float32) * binary32(parts["weight_scale"])[:, None]
    if "smooth" in parts:
        scaled = scaled / binary32(parts["smooth"])
    return scaled


def encode(values: Values, params: Params) -> dict[str, Array]:
    """Values times the factors of their inputs; a scale is the largest magnitude over 127, codes half to even.

    Raises: CannotEncode for values that are not finite, SchemeRefused for factors that do not fit.
    """
    finite_source(_NAME, values)
    factors = np.array(params["smooth"], np.float64).astype(np.float32)
    if factors.size:
        if factors.shape != values.shape[1:] or not np.isfinite(factors).all() or not (factors > 0).all():
            expected = f"a factor above zero for each of {values.shape[1]} inputs"
            raise refuse_parameter(_NAME, "smooth", expected, f"{factors.size} numbers")
        values = finite_source(_NAME, values * factors)
    scales = largest(values, 1) / np.float32(127)
    codes = np.clip(np.rint(divided(values, np.broadcast_to(scales, values.shape))), -128, 127)
    parts: dict[str, Array] = {"weight": codes.astype(np.int8), "weight_scale": scales[:, 0]}
    return parts | {"smooth": factors} if factors.size else parts


SMOOTHQUANT: Final = Form(
    name=_NAME,
    kind="file",
    summary="Eight-bit integers with a scale for each output; smoothing factors of the inputs are divided out.",
    axes=("out", "in"),
    parts=(
        Part("weight", ("int8",), "[O, I]", "codes of the smoothed weight"),
        Part("weight_scale", FLOATS, "[O]", "the factor of each output"),
        Part(
            "smooth",
            FLOATS,
            "[I]",
            "smoothing factors, where they are not folded into the norm before; absent, the smoothed weight is decoded",
            optional=True,
        ),
    ),
    parameters=(
        Parameter(
            "smooth", "numbers", "for encoding: the smoothing factor of each input; none to store none", ()
        ),
    ),
    stored=_stored,
    decode=decode,
    infer=_infer,
    rules=(sound_scales("weight_scale"), sound_divisors("smooth")),
    encode=encode,
    encoding="nearest",
    oracle="the definition",
    notes="The catalogue calls the factors a rotation along axis 1; they are a diagonal on the inputs.",
)
