"""Every literal form: a profile, and from it the struct type, the size, the decoder, the encoder and the rules."""

from collections.abc import Mapping
from math import prod
from typing import Final

import numpy as np

from ninfer_core.registry import Closed
from ninfer_core.schemes.form import Array, Form, Infer, Params, Part, Parts, Shape, Values
from ninfer_core.schemes.literal.blocks import BLOCKS
from ninfer_core.schemes.literal.codebooks import CODEBOOKS
from ninfer_core.schemes.literal.floats import FLOATS
from ninfer_core.schemes.literal.linear import LINEAR
from ninfer_core.schemes.literal.spec import Spec
from ninfer_core.schemes.profiles.dispatch import decode
from ninfer_core.schemes.profiles.encode import encode
from ninfer_core.schemes.profiles.functions import with_functions
from ninfer_core.schemes.profiles.rules import check_words
from ninfer_core.schemes.profiles.translate import translate
from ninfer_core.schemes.run import refuse_shape
from ninfer_core.schemes.structs.model import Declared
from ninfer_core.schemes.structs.sizes import size_bytes

SPECS: Final[Closed[Spec]] = Closed("literal form", *LINEAR, *CODEBOOKS, *FLOATS, *BLOCKS)
_ORACLE: Final = "two independent readers of the specification's generator"
_ORACLES: Final = {
    "mxfp4_literal": "ml_dtypes 0.6.0, gfloat 0.5.2, compressed-tensors 0.20.1",
    "mxfp6_e3m2_literal": "ml_dtypes 0.6.0, gfloat 0.5.2",
    "mxfp6_e2m3_literal": "ml_dtypes 0.6.0, gfloat 0.5.2, compressed-tensors 0.20.1",
    "nvfp4_literal": "ml_dtypes 0.6.0, gfloat 0.5.2",
}


def _form(spec: Spec) -> Form:
    def declare(shape: Shape, params: Params) -> Declared:
        return with_functions(spec.quantization(shape, params), shape)

    def stored(shape: Shape, params: Params) -> Mapping[str, Shape]:
        return {"payload": (size_bytes(translate(spec.quantization(shape, params), shape)),)}

    def decoded(parts: Parts, shape: Shape, params: Params) -> Values:
        quantization = spec.quantization(shape, params)
        payload = np.ascontiguousarray(parts["payload"])
        return decode(quantization, translate(quantization, shape), payload, shape)

    def encoded(values: Values, params: Params) -> dict[str, Array]:
        return {"payload": encode(spec.quantization(values.shape, params), values)}

    return Form(
        spec.name,
        "literal",
        spec.summary,
        spec.axes,
        (Part("payload", ("uint8",), "[bytes]", "the whole value, as its struct type says"),),
        spec.parameters,
        stored,
        decoded,
        _ORACLES.get(spec.name, _ORACLE),
        infer=_infer(spec),
        rules=(lambda parts, shape, params, findings: check_words(
            spec.quantization(shape, params), parts["payload"], shape, findings
        ),),
        encode=encoded if spec.encoding else None,
        encoding=spec.encoding,
        arithmetic=spec.arithmetic,
        declare=declare,
        notes=spec.notes,
    )  # fmt: skip


def _infer(spec: Spec) -> Infer | None:
    if spec.rate is None:
        return None
    values, size = spec.rate

    def infer(shapes: Mapping[str, Shape], params: Params) -> Shape:
        held = prod(shapes["payload"])
        if held % size:
            raise refuse_shape(spec.name, shapes["payload"], f"a payload of whole runs of {size} bytes")
        return (held // size * values,)

    return infer


FORMS: tuple[Form, ...] = tuple(map(_form, SPECS))
