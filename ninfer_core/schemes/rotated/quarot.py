"""QuaRot: signed four-bit weights of a matrix that a Hadamard rotation has spread evenly."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from ninfer_core.schemes import bits, hadamard
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
from ninfer_core.schemes.run import CannotEncode, refuse_shape
from ninfer_core.schemes.scales import binary32, divided, finite_source, largest, sound_scales

_NAME: Final = "quarot"
_SIDES: Final[Mapping[str, tuple[int, ...]]] = {
    "none": (),
    "input": (1,),
    "output": (0,),
    "both": (1, 0),
}  # axes


def _stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
    if len(shape) != 2 or shape[1] % 2:
        raise refuse_shape(_NAME, shape, "[out, in], inputs in pairs")
    for axis in _SIDES[params["unrotate"]]:
        if not hadamard.is_size(shape[axis]):
            raise refuse_shape(_NAME, shape, f"a power of two along axis {axis}, to undo its rotation")
    return {"weight": (shape[0], shape[1] // 2), "weight_scales": (shape[0], 1)}


def _infer(stored: Mapping[str, Shape], params: Params) -> Shape:
    packed = stored.get("weight", ())
    if len(packed) != 2:
        raise refuse_shape(_NAME, packed, "weight [out, in/2]")
    return packed[0], packed[1] * 2


def _rotated(values: Values, params: Params) -> Values:
    for axis in _SIDES[params["unrotate"]]:
        values = hadamard.transform(values, values.shape[axis], axis)
    return values


def decode(parts: Parts, shape: Shape, params: Params) -> Values:
    """Code times the scale of its row: the rotated weight, as stored; the sides named are then rotated back (R11; 5.24)."""
    codes = bits.signed(bits.codes_of(parts["weight"], 4, shape[1]), 4)
    return _rotated(codes.astype(np.float32) * binary32(parts["weight_scales"]), params)


def encode(values: Values, params: Params) -> dict[str, Array]:
    """The named sides are rotated; a scale is the largest magnitude of its row over 7 in binary16; codes half to even.

    Raises: CannotEncode for values that are not finite, or a row whose scale is beyond binary16.
    """
    values = finite_source(_NAME, _rotated(finite_source(_NAME, values), params))
    scales = (largest(values, 1) / np.float32(7)).astype(np.float16)
    if not np.isfinite(scales).all():
        raise CannotEncode(f"{_NAME} stores scales as binary16, and a row's largest magnitude needs more")
    quotients = divided(values, np.broadcast_to(scales.astype(np.float32), values.shape))
    codes = np.clip(np.rint(quotients), -8, 7).astype(np.int8)
    return {"weight": bits.words_of(codes.view(np.uint8) & np.uint8(15), 4), "weight_scales": scales}


def _word(params: Params) -> tuple[Slice, ...]:
    return stream_word("value ", 4, 8)


QUAROT: Final = Form(
    name=_NAME,
    kind="file",
    summary="Signed four-bit integers with a scale for each row, of a weight that was rotated by Hadamard matrices.",
    axes=("out", "in"),
    parts=(
        Part("weight", ("uint8",), "[O, I/2]", "signed nibbles, the first in the low one"),
        Part("weight_scales", ("float16", "float32", "bfloat16"), "[O, 1]", "the factor of each row"),
    ),
    parameters=(
        Parameter(
            "unrotate",
            "text",
            "sides whose rotation is undone; none decodes the weight as stored",
            "none",
            tuple(_SIDES),
        ),
    ),
    stored=_stored,
    decode=decode,
    infer=_infer,
    rules=(sound_scales("weight_scales"),),
    encode=encode,
    encoding="nearest",
    oracle="scipy.linalg.hadamard, own packer by the public rule",
    arithmetic="exact as stored; with a side rotated back, within 1e-5 of the largest value for other orders of summing",
    word=_word,
    notes="The catalogue declares unsigned symmetric codes with zero point 0, which have no negative weights.",
)
