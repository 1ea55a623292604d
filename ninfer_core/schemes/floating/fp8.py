"""FP8 weights of checkpoints: one byte for each value, with one scale, a scale along an axis, or one for each block."""

from collections.abc import Mapping
from typing import Final

import ml_dtypes
import numpy as np

from ninfer_core.findings import Findings
from ninfer_core.schemes import small_floats
from ninfer_core.schemes.faults import report
from ninfer_core.schemes.form import Array, Form, Parameter, Params, Part, Parts, Shape, Slice, Values
from ninfer_core.schemes.run import Refusal, refuse_parameter, refuse_shape
from ninfer_core.schemes.scales import (
    FLOATS,
    binary32,
    divided,
    finite_source,
    sound_scales,
    words_of,
)
from ninfer_core.schemes.small_floats import SmallFloat

_NAME: Final = "fp8"
_DIALECTS: Final[Mapping[str, SmallFloat]] = {
    float8.name: float8
    for float8 in (small_floats.E4M3FN, small_floats.E5M2, small_floats.E4M3FNUZ, small_floats.E5M2FNUZ)
}


def _grid(shape: Shape, params: Params) -> tuple[Shape, Shape]:
    """The shape of the scales and, for each axis of the weight, how many values share one. Raises: SchemeRefused."""
    axis, block = params["axis"], params["block_shape"]
    if block is not None:
        if axis is not None:
            raise refuse_parameter(_NAME, "axis", "none beside block_shape", axis)
        if len(block) != len(shape) or min(block, default=0) < 0:
            raise refuse_parameter(_NAME, "block_shape", f"a length for each of {len(shape)} axes", block)
        whole = [max(length, 1) for length in shape]
        runs = tuple(min(run or length, length) for run, length in zip(block, whole, strict=True))
        return tuple(-(-length // run) for run, length in zip(runs, shape, strict=True)), runs
    if axis is None:
        return (1,), tuple(max(length, 1) for length in shape)
    if not 0 <= axis < len(shape):
        raise refuse_parameter(_NAME, "axis", f"one of {len(shape)} axes", axis)
    return (shape[axis],), tuple(1 if n == axis else max(length, 1) for n, length in enumerate(shape))


def _stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    return {"payload": shape, "scale": _grid(shape, params)[0]}


def _infer(stored: Mapping[str, Shape], params: Params) -> Shape:
    if "payload" not in stored:
        raise refuse_shape(_NAME, (), "the payload has the shape of the weight")
    return stored["payload"]


def _same_dialect(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    """An array that says its own type is read as no other."""
    payload, stated = parts["payload"], f"float8_{params['dialect']}"
    if payload.dtype != np.uint8 and payload.dtype != np.dtype(getattr(ml_dtypes, stated)):
        refusal = Refusal(_NAME, findings)
        found = payload.dtype.name
        refusal.add("part_dtype", f"payload holds {found}", stated, found, part="payload")


def _over(scales: Values, shape: Shape, runs: Shape) -> Values:
    """Scales as they apply to each value: axes of the grid repeated, the last run cut where it is short."""
    grid = scales.reshape(tuple(-(-length // run) for length, run in zip(shape, runs, strict=True)))
    for axis, (length, run) in enumerate(zip(shape, runs, strict=True)):
        if 1 < run < length:
            grid = grid.take(np.arange(length) // run, axis)
    return grid


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """The code's value times its scale, in binary32; `weight_scale_inv` multiplies as well (5.10).

    Raises: SchemeRefused where the array is of another dialect than the stated one.
    """
    refusal = Refusal(_NAME)
    _same_dialect(parts, shape, params, refusal.findings)
    refusal.settle()
    values = small_floats.decode(_DIALECTS[params["dialect"]], words_of(parts["payload"]))
    if not values.size:
        return values
    _, runs = _grid(shape, params)
    return np.asarray(values * _over(binary32(parts["scale"]), shape, runs))


def encode(values: Values, params: Params) -> dict[str, Array]:
    """Scales are the largest magnitude over the largest number of the dialect; codes are nearest, ties to even.

    Raises: CannotEncode for values that are not finite.
    """
    dialect = _DIALECTS[params["dialect"]]
    stored, runs = _grid(values.shape, params)
    finite_source(_NAME, values)
    if not values.size:
        return {"payload": np.zeros(values.shape, np.uint8), "scale": np.zeros(stored, np.float32)}
    top = np.abs(values)
    for axis, (length, run) in enumerate(zip(values.shape, runs, strict=True)):
        top = np.maximum.reduceat(top, np.arange(0, length, run), axis)
    scales: Values = np.divide(top, np.float32(dialect.largest), dtype=np.float32)
    quotients = divided(values, np.broadcast_to(_over(scales, values.shape, runs), values.shape))
    return {"payload": small_floats.encode(dialect, quotients), "scale": scales.reshape(stored)}


def _codes_are_numbers(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
    words = words_of(parts["payload"])
    values = small_floats.decode(_DIALECTS[params["dialect"]], words)
    message = "holds codes of NaN or infinity"
    report(findings, "value_not_finite", "payload", ~np.isfinite(values), words, message, "a finite number")


def _word(params: Params) -> tuple[Slice, ...]:
    dialect = _DIALECTS[params["dialect"]]
    return (
        Slice("mantissa", dialect.mantissa_bits),
        Slice("exponent", dialect.exponent_bits),
        Slice("sign", 1),
    )


FP8: Final = Form(
    name=_NAME,
    kind="file",
    summary="Eight-bit floats with one binary32 scale, one along an axis, or one for each block.",
    axes=("out", "in"),
    parts=(
        Part(
            "payload",
            ("uint8", *(f"float8_{name}" for name in _DIALECTS)),
            "[O, I]",
            "`weight` of a checkpoint: one code for each value",
        ),
        Part(
            "scale",
            (*FLOATS, "float8_e8m0fnu"),
            "[1], [axis] or [O/rows, I/columns]",
            "`weight_scale`, or `weight_scale_inv`, which multiplies as well",
        ),
    ),
    parameters=(
        Parameter("dialect", "text", "which eight-bit float the codes are", "e4m3fn", tuple(_DIALECTS)),
        Parameter("axis", "integer", "the axis along which each index has a scale", None),
        Parameter(
            "block_shape", "integers", "values that share a scale, for each axis; 0 is the whole axis", None
        ),
    ),
    stored=_stored,
    decode=decode,
    infer=_infer,
    rules=(_same_dialect, _codes_are_numbers, sound_scales("scale")),
    encode=encode,
    encoding="nearest",
    oracle="torch 2.13 float8 casts, ml_dtypes 0.6.0",
    word=_word,
    notes=(
        "The catalogue declares scale 1 and calls it linear: cast, then scale. Most block-scaled releases share a "
        "scale among 128 x 128 values (`block_shape` 128,128). The registry's FP8 has a bfloat16 scale for each row "
        "and a layout of its own: another thing."
    ),
)
