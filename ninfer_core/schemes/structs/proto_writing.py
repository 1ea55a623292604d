"""Values, declarations and models of struct types written as protobuf messages."""

from collections.abc import Iterable
from typing import Any, Final

import onnx
from google.protobuf.message import DecodeError

from ninfer_core.errors import NinferError
from ninfer_core.schemes.structs.model import (
    Array,
    Component,
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
from ninfer_core.schemes.structs.proto_messages import message_class
from ninfer_core.schemes.structs.proto_texts import broken_text

# Readers of protobuf stop at a hundred messages inside of each other; a leaf takes the last three.
DEEPEST: Final = 97


class CannotWrite(NinferError):
    """A value or a type that the messages have no place for: a number beyond its field, or too deep a nesting."""

    code = "struct_unwritable"


def value_to_proto(value: Value) -> bytes:
    """The StructProto of a value. Raises: CannotWrite."""
    return _serialized(value_message(value))


def declaration_to_proto(declaration: Declaration) -> bytes:
    """The StructTypeProto of a declaration. Raises: CannotWrite."""
    message = message_class("StructTypeProto")()
    fill_declaration(message, declaration, depth=1)
    return _serialized(message)


def model_to_proto(declarations: Iterable[Declaration]) -> bytes:
    """A ModelProto that holds nothing but the declarations, as `struct_types`. Raises: CannotWrite."""
    message = message_class("ModelProto")()
    for declaration in declarations:
        fill_declaration(message.struct_types.add(), declaration, depth=2)
    return _serialized(message)


def value_message(value: Value, depth: int = 1) -> Any:
    """The StructProto message of a value, `depth` messages deep where it will stand. Raises: CannotWrite."""
    message = message_class("StructProto")()
    # Zero is written as well: readers without presence take an absent number for it.
    _set(message, "type", value.type)
    if value.declaration is not None:
        message.struct_type.SetInParent()
        fill_declaration(message.struct_type, value.declaration, depth + 1)
    if value.data:
        message.raw_data = value.data
    if value.external is not None:
        if not value.external.entries:
            raise CannotWrite("external data without entries has no place in a StructProto")
        _add_entries(message.external_data, value.external.entries)
    _set_text(message, "name", value.name)
    _set_text(message, "doc_string", value.doc)
    _extend(message, "dims", value.dims)
    return message


def fill_declaration(message: Any, declaration: Declaration, depth: int) -> None:
    """Fill a StructTypeProto that stands `depth` messages deep. Raises: CannotWrite."""
    if declaration.type is not None:
        _fill_kind(message, declaration.type, depth)
    for slot, function in (("decoder", declaration.decoder), ("encoder", declaration.encoder)):
        if function is not None:
            _fill_function(getattr(message, slot), function, slot)
    _set_text(message, "name", declaration.name)
    _set_text(message, "doc_string", declaration.doc)
    _add_entries(message.metadata_props, declaration.metadata)
    _extend(message, "dims_param", declaration.dims_param)


def _fill_function(message: Any, function: bytes, slot: str) -> None:
    try:
        message.ParseFromString(function)
    except DecodeError as fault:
        raise CannotWrite(f"the {slot} is no FunctionProto: {fault}") from fault
    broken = broken_text(message)
    if broken is not None:  # no reader of this form would take it
        raise CannotWrite(f"{broken} of the {slot} is no UTF-8")
    message.SetInParent()


def fill_type(message: Any, type_: Type, depth: int) -> None:
    """Fill a TypeProto that stands `depth` messages deep. Raises: CannotWrite."""
    if depth > DEEPEST:
        raise CannotWrite(
            "types nested so deep cannot be read from protobuf; declare the inner ones and refer"
        )
    if isinstance(type_, Leaf):
        if type_.name not in onnx.TensorProto.DataType.keys():  # noqa: SIM118  an enum wrapper, no mapping
            raise CannotWrite(f"{type_.name} is no element type of ONNX")
        message.tensor_type.elem_type = onnx.TensorProto.DataType.Value(type_.name)
        message.tensor_type.shape.SetInParent()
        for size in type_.shape:
            _set(message.tensor_type.shape.dim.add(), "dim_value", size)
    else:
        message.struct_type.SetInParent()
        _fill_kind(message.struct_type, type_, depth + 1)


def _fill_kind(message: Any, type_: Type, depth: int) -> None:
    if isinstance(type_, Reference):
        _set(message, "type_index", type_.index)
    elif isinstance(type_, Array):
        message.array.SetInParent()
        fill_type(message.array.element_type, type_.element, depth + 2)
        _set_count(message.array, type_.count)
    elif isinstance(type_, PackedArray):
        message.packed_array.SetInParent()
        for component in type_.components:
            _fill_component(message.packed_array.component.add(), component)
        _set_count(message.packed_array, type_.count)
    elif isinstance(type_, Structure):
        message.structure.SetInParent()
        for field in type_.fields:
            _fill_field(message.structure.field.add(), field, depth + 2)
    else:
        raise CannotWrite(f"a root is an array, a packed array, a structure or a reference, not {type_.name}")


def _fill_component(message: Any, component: Component) -> None:
    _set_text(message, "name", component.name)
    _set(message, "bit_width", component.bits)


def _fill_field(message: Any, field: Field, depth: int) -> None:
    _set_text(message, "name", field.name)
    _set_text(message, "doc_string", field.doc)
    if field.type is not None:
        fill_type(message.type, field.type, depth + 1)
    if field.constant is not None:
        _fill_constant(message.constant, field.constant)


def _fill_constant(message: Any, constant: Constant) -> None:
    if constant.dtype not in onnx.TensorProto.DataType.keys():  # noqa: SIM118  an enum wrapper, no mapping
        raise CannotWrite(f"{constant.dtype} is no element type of ONNX")
    message.data_type = onnx.TensorProto.DataType.Value(constant.dtype)
    _extend(message, "dims", constant.dims)
    if constant.external:
        message.data_location = onnx.TensorProto.EXTERNAL
    message.raw_data = constant.data


def _set_count(message: Any, count: Count) -> None:
    if isinstance(count, Dim):
        _set(message, "dims_index", count.index)
    else:
        _set(message, "dimension", count)


def _set(message: Any, name: str, number: int) -> None:
    try:
        setattr(message, name, number)
    except ValueError as fault:
        raise CannotWrite(f"{name}: {number} does not fit its field") from fault


def _set_text(message: Any, name: str, text: str) -> None:
    if text:
        _assign(lambda: setattr(message, name, text), name)


def _extend(message: Any, name: str, items: Iterable[Any]) -> None:
    _assign(lambda: getattr(message, name).extend(items), name)


def _add_entries(container: Any, entries: Iterable[tuple[str, str]]) -> None:
    for key, text in entries:
        _assign(lambda: container.add(key=key, value=text), key)  # noqa: B023  called at once


def _assign(action: Any, name: str) -> None:
    """Run one assignment. Protobuf refuses numbers beyond a field and text with lone surrogates by ValueError."""
    try:
        action()
    except ValueError as fault:
        raise CannotWrite(f"{name} cannot be written: {fault}") from fault


def _serialized(message: Any) -> bytes:
    data: bytes = message.SerializeToString(deterministic=True)
    return data
