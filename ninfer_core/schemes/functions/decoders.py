"""Decoders of stored forms as ONNX functions (struct types 6); literal forms bring theirs with their types."""

from collections.abc import Mapping
from typing import Any

import onnx

from ninfer_core.schemes.form import Form, Shape
from ninfer_core.schemes.functions.declared import declared_of


def decoder_of(
    form: Form, shape: Shape, params: Mapping[str, Any], dtypes: Mapping[str, str] | None = None
) -> onnx.FunctionProto | None:
    """The decoder of a form for one logical shape, None where its type has none: a custom profile, or parts too few.

    Raises: SchemeRefused.
    """
    declared = declared_of(form, shape, params, dtypes)
    data = declared.declarations[declared.root].decoder
    if data is None:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(data)
    return function
