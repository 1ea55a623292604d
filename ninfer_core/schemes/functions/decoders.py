"""Decoders and encoders of forms as ONNX functions (struct types 6); literal forms bring theirs with their types."""

from collections.abc import Mapping
from typing import Any, Literal

import onnx

from ninfer_core.schemes.form import Form, Shape
from ninfer_core.schemes.functions.declared import declared_of
from ninfer_core.schemes.structs.model import Declared


def decoder_of(
    form: Form, shape: Shape, params: Mapping[str, Any], dtypes: Mapping[str, str] | None = None
) -> onnx.FunctionProto | None:
    """The decoder of a form for one logical shape, None where its type has none: a custom profile, or parts too few.

    Raises: SchemeRefused.
    """
    return _function(declared_of(form, shape, params, dtypes), "decoder")


def encoder_of(form: Form, shape: Shape, params: Mapping[str, Any]) -> onnx.FunctionProto | None:
    """The encoder of a form for one logical shape, None where its type has none: the page says why. Raises: SchemeRefused."""
    return _function(declared_of(form, shape, params), "encoder")


def _function(declared: Declared, slot: Literal["decoder", "encoder"]) -> onnx.FunctionProto | None:
    root = declared.declarations[declared.root]
    data = root.decoder if slot == "decoder" else root.encoder
    if data is None:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(data)
    return function
