"""Decoders and encoders in a JSON document: the text form of ONNX, or the bytes of a FunctionProto in base64."""

import base64
import binascii

from ninfer_core.documents.fields import Fields
from ninfer_core.errors import NinferError


def read_function(fields: Fields, name: str) -> bytes | None:
    """The serialized FunctionProto of the member `{"onnx_text": ...}` or `{"base64": ...}`; None when absent."""
    if name not in fields:
        return None
    forms = ("onnx_text", "base64")
    inner = Fields(fields.faults, fields.raw(name), fields.path(name), (), forms)
    given = [form for form in forms if form in inner]
    if len(given) != 1:
        fields.wrong_value(name, "onnx_text or base64")
        return None
    text = inner.text(given[0])
    if text is None:
        return None
    try:
        if given == ["base64"]:
            return base64.b64decode(text, validate=True)
        from ninfer_core.schemes.functions.text import function_from_text

        return function_from_text(text)
    except (binascii.Error, ValueError):
        inner.wrong_value("base64", "base64 with its padding")
    except NinferError as refused:
        path = inner.path("onnx_text")
        fields.faults.add(
            f"{name}_signature",
            path,
            f"no function: {refused}.",
            "a function in ONNX text form",
            "other text",
        )
    return None


def write_function(function: bytes) -> dict[str, str]:
    """The member for a serialized function."""
    return {"base64": base64.b64encode(function).decode("ascii")}
