"""The message classes of the protobuf form, made from the table of numbers on top of ONNX's own descriptors.

They live in a pool of their own: ONNX's files are copied there and gain the rows of the table, so that TypeProto,
TensorProto and FunctionProto are ONNX's field by field, and the classes of the package `onnx` stay as they are.
"""

from functools import cache
from typing import Any, Final

import onnx
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from ninfer_core.schemes.structs.proto_numbers import ADDED_FIELDS, ADDED_VALUES, NEW_MESSAGES, Row

_PACKAGE: Final = "onnx"
_SCALARS: Final = {
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "uint64": descriptor_pb2.FieldDescriptorProto.TYPE_UINT64,
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
}


def message_class(name: str) -> Any:
    """The class of a message of the package `onnx`, with the fields of the table. Raises: KeyError."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


@cache
def _pool() -> Any:
    """ONNX's two files with the additions of the table.

    The new messages stand in the first file, because TypeProto refers to them and they to TypeProto.
    """
    types = _copy_of(onnx.TypeProto)
    for name, rows in NEW_MESSAGES.items():
        _extend(types.message_type.add(name=name), rows)
    containers = _copy_of(onnx.SequenceProto)
    for file in (types, containers):
        for message in file.message_type:
            _extend(message, ADDED_FIELDS.get(message.name, ()))
            for enum in message.enum_type:
                for owner, enum_name, value, number in ADDED_VALUES:
                    if (owner, enum_name) == (message.name, enum.name):
                        enum.value.add(name=value, number=number)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(types)
    pool.Add(containers)
    return pool


def _copy_of(message: Any) -> Any:
    file = descriptor_pb2.FileDescriptorProto()
    message.DESCRIPTOR.file.CopyToProto(file)
    return file


def _extend(message: Any, rows: tuple[Row, ...]) -> None:
    oneofs = [one.name for one in message.oneof_decl]
    for row in rows:
        label = "LABEL_REPEATED" if row.repeated else "LABEL_OPTIONAL"
        field = message.field.add(name=row.name, number=row.number)
        field.label = descriptor_pb2.FieldDescriptorProto.Label.Value(label)
        if row.type in _SCALARS:
            field.type = _SCALARS[row.type]
        else:
            field.type = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
            field.type_name = f".{_PACKAGE}.{row.type}"
        if row.oneof:
            if row.oneof not in oneofs:
                oneofs.append(row.oneof)
                message.oneof_decl.add(name=row.oneof)
            field.oneof_index = oneofs.index(row.oneof)
