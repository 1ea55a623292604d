"""Struct types and values as JSON documents, in the one spelling that reading gives back unchanged."""

import json
from typing import Any

from ninfer_core.schemes.structs.json_functions import write_function
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.model import (
    Array,
    Constant,
    Count,
    Declaration,
    Dim,
    Field,
    Leaf,
    PackedArray,
    Reference,
    Structure,
    Type,
    Value,
)


def write_document(model: tuple[Declaration, ...], value: Value | None = None) -> str:
    """The document of a model and, where there is one, its value; line by line, ready for a file."""
    members: dict[str, Any] = {"types": [declaration_json(one) for one in model]}
    if value is not None:
        members["value"] = _value(value)
    return json.dumps(members, indent=1) + "\n"


def declaration_json(declaration: Declaration) -> dict[str, Any] | str:
    """A declaration as a member of `types`, or as `struct_type`; `dims_param` is always said."""
    written = type_json(declaration.type) if declaration.type is not None else {}
    if isinstance(written, str):
        # A scalar is no declaration; what it carries needs an object, and the checker sees the scalar in it.
        written = {"tensor": written}
    written["dims_param"] = list(declaration.dims_param)
    said = {
        "name": declaration.name,
        "doc_string": declaration.doc,
        "metadata_props": dict(declaration.metadata),
        "decoder": None if declaration.decoder is None else write_function(declaration.decoder),
        "encoder": None if declaration.encoder is None else write_function(declaration.encoder),
    }
    return written | {name: member for name, member in said.items() if member}


def type_json(type_: Type) -> dict[str, Any] | str:
    """A type in the notation of section 10."""
    match type_:
        case Leaf(name=name, shape=shape):
            return {"tensor": name, "shape": list(shape)} if shape else name
        case Array(element=element, count=count):
            return {"array": {"element": type_json(element), **_count(count)}}
        case PackedArray(components=components, count=count):
            listed = [[part.name, part.bits] for part in components]
            return {"packed_array": {"components": listed, **_count(count)}}
        case Structure(fields=fields):
            return {"structure": [_field(field) for field in fields]}
        case Reference(index=index):
            return {"type_index": index}


def _count(count: Count) -> dict[str, int]:
    return {"dims_index": count.index} if isinstance(count, Dim) else {"dimension": count}


def _field(field: Field) -> dict[str, Any]:
    written: dict[str, Any] = {"name": field.name}
    if field.type is not None:
        written["type"] = type_json(field.type)
    if field.constant is not None:
        written["constant"] = constant_json(field.constant)
    if field.doc:
        written["doc_string"] = field.doc
    return written


def constant_json(constant: Constant) -> dict[str, Any]:
    """A constant with its words: integers and truths as `values`, floats as `raw_hex`, which keeps every NaN."""
    written: dict[str, Any] = {"dtype": constant.dtype, "dims": list(constant.dims)}
    if constant.external:
        return written | {"external": True}
    values = None
    if constant.dtype in LEAVES and LEAVES[constant.dtype].kind != "float":
        values = _values(constant)
    return written | ({"raw_hex": constant.data.hex()} if values is None else {"values": values})


def _values(constant: Constant) -> list[Any] | None:
    # Only where reading them gives the very bytes: a bool may be stored as 2, and the padding as anything.
    from ninfer_core.schemes.structs.constants import constant_fault
    from ninfer_core.schemes.structs.numbers import packed
    from ninfer_core.schemes.structs.view import constant_array

    if constant_fault(constant) is not None:
        return None
    element = LEAVES[constant.dtype]
    values: list[Any] = constant_array(constant).reshape(-1).tolist()
    return values if packed(values, element) == constant.data else None


def _value(value: Value) -> dict[str, Any]:
    said = {
        "struct_type": None if value.declaration is None else declaration_json(value.declaration),
        "raw_data_hex": value.data.hex(),
        "dims": list(value.dims),
        "name": value.name,
        "doc_string": value.doc,
    }
    written = {"type": value.type} | {name: member for name, member in said.items() if member}
    if value.external is not None:
        written["external_data"] = dict(value.external.entries)
    return written
