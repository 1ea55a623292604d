"""The catalogue's dispatcher: a struct type with its payload into numbers, whichever profile it is the translation of."""

import math

import numpy as np

from ninfer_core.schemes.form import Shape, Values
from ninfer_core.schemes.profiles.decode import Walk
from ninfer_core.schemes.profiles.describe import describe, normalized
from ninfer_core.schemes.profiles.faults import refusal
from ninfer_core.schemes.profiles.model import Quantization
from ninfer_core.schemes.profiles.ops import ArrayOps
from ninfer_core.schemes.profiles.place import root_place
from ninfer_core.schemes.profiles.translate import translate
from ninfer_core.schemes.structs.model import Declared
from ninfer_core.schemes.structs.view import Payload, view


def dequantize(declared: Declared, payload: Payload, logical: Shape) -> Values:
    """The numbers of a value whose type is a profile's translation, binary32, of shape `logical`.

    By the profile's own rules: a decoder that the type carries is not run, see `functions.evaluate` for that.
    The declared type must be that of this shape: it holds no fewer values, and no more than padding explains (R3).
    Raises: StructFault, SchemeRefused.
    """
    quantization = describe(declared)
    if normalized(translate(quantization, logical)) != normalized(declared):
        message = f"shape {list(logical)} has another struct type"
        raise refusal(quantization.name, "capacity", "", message, "the declared counts", list(logical))
    return decode(quantization, declared, payload, logical)


def decode(quantization: Quantization, declared: Declared, payload: Payload, logical: Shape) -> Values:
    """The numbers of a payload whose type was made from `quantization` for `logical`.

    Raises: StructFault, SchemeRefused.
    """
    ops = ArrayOps(quantization.name, view(declared, payload))
    with np.errstate(all="ignore"):  # infinities and NaN are numbers like others here
        made = Walk(ops).values(quantization, logical, root_place(declared))
    values = np.ascontiguousarray(made, np.float32)
    if values.size != math.prod(logical):
        message = "another number of values was decoded"
        raise refusal(quantization.name, "decoded_length", "", message, math.prod(logical), values.size)
    return values.reshape(logical)
