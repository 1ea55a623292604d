"""Sequences, maps and optionals of structured values as ONNX's messages with their STRUCT branches, and static types.

Names of containers are documentation and are not kept. Depth is bounded by protobuf's reader, which stops at a hundred
messages inside of each other, and here when writing.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import onnx

from ninfer_core.schemes.structs.containers import (
    Contained,
    Map,
    MapType,
    Optional,
    OptionalType,
    Sequence,
    SequenceType,
    StaticType,
)
from ninfer_core.schemes.structs.model import Declaration, Value
from ninfer_core.schemes.structs.proto_messages import message_class
from ninfer_core.schemes.structs.proto_reading import Reader
from ninfer_core.schemes.structs.proto_writing import DEEPEST, CannotWrite, fill_declaration, value_message

Kind = TypeVar("Kind")
_MESSAGES: Final = {"SequenceProto": Sequence, "OptionalProto": Optional, "MapProto": Map}
# The category of an element: the name in the enums of SequenceProto and OptionalProto, and the stem of its field.
_CATEGORIES: Final = {"STRUCT": "struct", "SEQUENCE": "sequence", "MAP": "map", "OPTIONAL": "optional"}


def contained_to_proto(value: Sequence | Optional | Map) -> bytes:
    """The SequenceProto, OptionalProto or MapProto of a container. Raises: CannotWrite."""
    data: bytes = _message(value, 1).SerializeToString(deterministic=True)
    return data


def sequence_from_proto(data: bytes) -> Sequence:
    """The container of a SequenceProto. Raises: ProtoRefused."""
    return _read("SequenceProto", data, _sequence)


def optional_from_proto(data: bytes) -> Optional:
    """The container of an OptionalProto. Raises: ProtoRefused."""
    return _read("OptionalProto", data, _optional)


def map_from_proto(data: bytes) -> Map:
    """The container of a MapProto. Raises: ProtoRefused."""
    return _read("MapProto", data, _map)


def static_to_proto(static: StaticType) -> bytes:
    """The TypeProto of a static type. Raises: CannotWrite."""
    message = message_class("TypeProto")()
    _fill_static(message, static, 1)
    data: bytes = message.SerializeToString(deterministic=True)
    return data


def static_from_proto(data: bytes) -> StaticType:
    """The static type of a TypeProto: of structured values, or of containers of them. Raises: ProtoRefused."""
    return _read("TypeProto", data, _static)


def _read(name: str, data: bytes, read: Callable[[Reader, Any, str], Kind]) -> Kind:
    reader = Reader()
    message = reader.parsed(name, data)
    reader.require_text(message, "")
    value = read(reader, message, "")
    reader.settle(name)
    return value


def _message(value: Contained, depth: int) -> Any:
    if depth > DEEPEST:
        raise CannotWrite("containers nested so deep cannot be read from protobuf")
    if isinstance(value, Value):
        return value_message(value, depth)
    name = next(name for name, kind in _MESSAGES.items() if isinstance(value, kind))
    message = message_class(name)()
    if isinstance(value, Map):
        _fill_map(message, value, depth)
        return message
    items = value.values if isinstance(value, Sequence) else (value.value,) if value.value is not None else ()
    if value.value_type is not None:
        message.value_type.SetInParent()
        _fill_static(message.value_type, value.value_type, depth + 1)
    categories = {_category(item) for item in items} or {_category_of_type(value.value_type)}
    if len(categories) > 1:
        raise CannotWrite(f"one container holds {' and '.join(sorted(categories))}")
    (category,) = categories
    message.elem_type = message_class(name).DataType.Value(category)
    for item in items:
        inner = _message(item, depth + 1)
        if isinstance(value, Sequence):
            getattr(message, f"{_CATEGORIES[category]}_values").append(inner)
        else:
            getattr(message, f"{_CATEGORIES[category]}_value").CopyFrom(inner)
    return message


def _category(value: Contained) -> str:
    return "STRUCT" if isinstance(value, Value) else type(value).__name__.upper()


def _category_of_type(static: StaticType | None) -> str:
    """Of the elements of an empty container, whose type is all that is known of them."""
    if static is None:
        return "UNDEFINED"
    return "STRUCT" if isinstance(static, Declaration) else type(static).__name__.removesuffix("Type").upper()


def _fill_map(message: Any, value: Map, depth: int) -> None:
    try:
        text = [key.encode() for key in value.keys if isinstance(key, str)]
    except UnicodeEncodeError as fault:
        raise CannotWrite(f"a key cannot be written: {fault}") from fault
    numbers = [key for key in value.keys if not isinstance(key, str)]
    if text and numbers:
        raise CannotWrite("the keys of one map are numbers and text")
    message.key_type = onnx.TensorProto.STRING if text else onnx.TensorProto.INT64
    try:
        message.keys.extend(numbers)
    except ValueError as fault:
        raise CannotWrite(f"a key does not fit 64 bits: {fault}") from fault
    message.string_keys.extend(text)
    message.values.CopyFrom(_message(value.values, depth + 1))


def _fill_static(message: Any, static: StaticType, depth: int) -> None:
    if depth > DEEPEST:
        raise CannotWrite("types nested so deep cannot be read from protobuf")
    match static:
        case Declaration():
            message.struct_type.SetInParent()
            fill_declaration(message.struct_type, static, depth + 1)
        case SequenceType(element=element):
            _fill_static(message.sequence_type.elem_type, element, depth + 2)
        case OptionalType(element=element):
            _fill_static(message.optional_type.elem_type, element, depth + 2)
        case MapType(key=key, value=value):
            if key not in onnx.TensorProto.DataType.keys():  # noqa: SIM118  an enum wrapper, no mapping
                raise CannotWrite(f"{key} is no element type of ONNX")
            message.map_type.key_type = onnx.TensorProto.DataType.Value(key)
            _fill_static(message.map_type.value_type, value, depth + 2)


def _sequence(reader: Reader, message: Any, path: str) -> Sequence:
    category = _category_read(reader, message, path, "_values")
    read = _READERS.get(category)
    items = getattr(message, f"{category}_values") if read else ()
    values = (
        tuple(read(reader, item, f"{path}/{category}[{i}]") for i, item in enumerate(items)) if read else ()
    )
    return Sequence(_value_type(reader, message, path), values)


def _optional(reader: Reader, message: Any, path: str) -> Optional:
    category = _category_read(reader, message, path, "_value")
    read = _READERS.get(category)
    held = read is not None and message.HasField(f"{category}_value")
    value = (
        read(reader, getattr(message, f"{category}_value"), f"{path}/{category}") if read and held else None
    )
    return Optional(_value_type(reader, message, path), value)


def _category_read(reader: Reader, message: Any, path: str, suffix: str) -> str:
    """The stem of the one field that may be filled, empty for none; whatever else is filled is a finding."""
    reader.closed(message, path)
    categories = type(message).DataType
    known = message.elem_type in categories.values()
    name = categories.Name(message.elem_type) if known else str(message.elem_type)
    category = _CATEGORIES.get(name, "")
    if name not in _CATEGORIES and name != "UNDEFINED":
        reader.add("value_invalid", "the elements are no structured values", path, "STRUCT", name)
    for field, _ in message.ListFields():
        if field.name.endswith(suffix) and field.name != f"{category}{suffix}":
            reader.add("member_unexpected", f"{field.name} beside elem_type {name}", path, "", field.name)
    return category


def _value_type(reader: Reader, message: Any, path: str) -> StaticType | None:
    return (
        _static(reader, message.value_type, f"{path}/value_type") if message.HasField("value_type") else None
    )


def _map(reader: Reader, message: Any, path: str) -> Map:
    reader.closed(message, path)
    keys: list[int | str] = list(message.keys)
    if message.string_keys and keys:
        reader.add("map_keys", "the keys are numbers and text", path, "one of them", "both")
    for i, key in enumerate(message.string_keys):
        try:
            keys.append(key.decode())
        except UnicodeDecodeError:
            reader.add("map_keys", f"key {i} is no UTF-8", path, "UTF-8", "other bytes")
    return Map(tuple(keys), _sequence(reader, message.values, f"{path}/values"))


def _static(reader: Reader, message: Any, path: str) -> StaticType:
    reader.closed(message, path)
    chosen = message.WhichOneof("value")
    if chosen == "struct_type":
        return reader.declaration(message.struct_type, path)
    if chosen == "sequence_type":
        return SequenceType(_static(reader, message.sequence_type.elem_type, f"{path}/element"))
    if chosen == "optional_type":
        return OptionalType(_static(reader, message.optional_type.elem_type, f"{path}/element"))
    if chosen == "map_type":
        numbers = onnx.TensorProto.DataType
        known = message.map_type.key_type in numbers.values()
        if not known:
            reader.add("value_invalid", "the key type does not exist", path, "", message.map_type.key_type)
        key = numbers.Name(message.map_type.key_type) if known else "UNDEFINED"
        return MapType(key, _static(reader, message.map_type.value_type, f"{path}/value"))
    reader.add(
        "value_invalid", "a static type of no structured value", path, "struct_type", chosen or "nothing"
    )
    return Declaration(None)


_READERS: Final[dict[str, Callable[[Reader, Any, str], Contained]]] = {
    "struct": lambda reader, message, path: reader.value(message, path),
    "sequence": _sequence,
    "map": _map,
    "optional": _optional,
}
