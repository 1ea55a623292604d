"""Protobuf messages read as values, declarations and models of struct types.

Whatever a message says has a place in the model, right or wrong, so that the checker judges it; what has none, such as
an unknown field, is a finding here. Memory follows the bytes given, and nesting is bounded by protobuf's own limit.
"""

from typing import Any, Final

import onnx
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from ninfer_core.errors import NinferError
from ninfer_core.findings import Findings
from ninfer_core.schemes.structs.model import (
    Array,
    Component,
    Constant,
    Count,
    Declaration,
    Dim,
    External,
    Field,
    Leaf,
    PackedArray,
    Reference,
    Structure,
    Type,
    Value,
)
from ninfer_core.schemes.structs.proto_constants import data_of
from ninfer_core.schemes.structs.proto_messages import message_class
from ninfer_core.schemes.structs.proto_texts import broken_text

_NOTHING: Final = Leaf("UNDEFINED")  # stands where a fault was found, in a value that is never returned


class ProtoRefused(NinferError):
    """Bytes that are no message of struct types, or one that the model has no place for; `findings` say all of it."""

    code = "struct_refused"

    def __init__(self, what: str, findings: Findings) -> None:
        first = findings.items[0].message if findings.items else "nothing was found"
        super().__init__(f"{what}: {first}")
        self.findings = findings


def value_from_proto(data: bytes) -> Value:
    """The value of a StructProto. Raises: ProtoRefused."""
    reader = Reader()
    message = reader.parsed("StructProto", data)
    reader.require_text(message, "")
    value = reader.value(message, "")
    reader.settle("StructProto")
    return value


def declaration_from_proto(data: bytes) -> Declaration:
    """The declaration of a StructTypeProto. Raises: ProtoRefused."""
    reader = Reader()
    message = reader.parsed("StructTypeProto", data)
    reader.require_text(message, "")
    declaration = reader.declaration(message, "")
    reader.settle("StructTypeProto")
    return declaration


def model_from_proto(data: bytes) -> tuple[Declaration, ...]:
    """The declarations of a ModelProto; what else the model holds is not looked at. Raises: ProtoRefused."""
    reader = Reader()
    message = reader.parsed("ModelProto", data)
    for i, item in enumerate(message.struct_types):
        reader.require_text(item, f"struct_types[{i}]")
    declarations = tuple(
        reader.declaration(item, f"struct_types[{i}]") for i, item in enumerate(message.struct_types)
    )
    reader.settle("ModelProto")
    return declarations


class Reader:
    """Reads messages and collects what is wrong with them; `settle` raises it."""

    def __init__(self) -> None:
        self.findings = Findings()

    def settle(self, what: str) -> None:
        """Raises: ProtoRefused, if anything was found."""
        if self.findings.items:
            raise ProtoRefused(what, self.findings)

    def parsed(self, name: str, data: bytes) -> Any:
        """The message `name` of the bytes. Raises: ProtoRefused."""
        try:
            return message_class(name).FromString(data)
        except DecodeError as fault:
            self.add("document_malformed", f"the bytes are no {name}: {fault}", "", name, "other bytes")
            raise ProtoRefused(name, self.findings) from fault

    def require_text(self, message: Any, path: str) -> None:
        """Raises: ProtoRefused for a string that is no UTF-8, which nothing later could compare or write."""
        broken = broken_text(message, path)
        if broken is not None:
            self.add("value_invalid", "a string is no UTF-8", broken, "UTF-8", "other bytes")
            self.settle(message.DESCRIPTOR.name)

    def add(self, slug: str, message: str, path: str, expected: object = "", found: object = "") -> None:
        """One finding `struct.<slug>` at a path of the message."""
        self.findings.add(
            f"struct.{slug}", message, where={"path": path or "/"}, expected=expected, found=found
        )

    def value(self, message: Any, path: str) -> Value:
        """The value of a StructProto message."""
        self.closed(message, path)
        entries = tuple((entry.key, entry.value) for entry in message.external_data)
        declaration = None
        if message.HasField("struct_type"):
            declaration = self.declaration(message.struct_type, _join(path, "struct_type"))
        return Value(
            type=message.type,
            declaration=declaration,
            data=message.raw_data,
            external=External(entries) if entries else None,
            name=message.name,
            doc=message.doc_string,
            dims=tuple(message.dims),
        )

    def declaration(self, message: Any, path: str) -> Declaration:
        """The declaration of a StructTypeProto message that may carry all that one can."""
        self.closed(message, path)
        functions = (
            getattr(message, slot).SerializeToString(deterministic=True) if message.HasField(slot) else None
            for slot in ("decoder", "encoder")
        )
        decoder, encoder = functions
        return Declaration(
            type=self._kind(message, path),
            name=message.name,
            doc=message.doc_string,
            dims_param=tuple(message.dims_param),
            metadata=tuple((entry.key, entry.value) for entry in message.metadata_props),
            decoder=decoder,
            encoder=encoder,
        )

    def type(self, message: Any, path: str) -> Type:
        """The type of a TypeProto message inside of a declaration."""
        self.closed(message, path)
        if message.denotation:
            self.add("member_unexpected", "the type of a part has no denotation", path, "", "denotation")
        chosen = message.WhichOneof("value")
        if chosen == "tensor_type":
            return self._leaf(message.tensor_type, _join(path, "tensor_type"))
        if chosen != "struct_type":
            what = chosen or "nothing"
            self.add(
                "bad_leaf_type", f"the type of a part is {what}", path, "a scalar or a struct type", what
            )
            return _NOTHING
        inner, inside = message.struct_type, _join(path, "struct_type")
        self.closed(inner, inside)
        extras = [field.name for field, _ in inner.ListFields() if field.containing_oneof is None]
        if extras:
            self.add("static_form_extras", f"a type inside another carries {', '.join(extras)}", inside)
        kind = self._kind(inner, inside)
        if kind is None:
            self.add("bad_leaf_type", "the type of a part is unconstrained", inside, "an exact type", "none")
            return _NOTHING
        return kind

    def _kind(self, message: Any, path: str) -> Type | None:
        chosen = message.WhichOneof("kind")
        if chosen == "type_index":
            return Reference(message.type_index)
        if chosen is None:
            return None
        part, path = getattr(message, chosen), _join(path, chosen)
        self.closed(part, path)
        if chosen == "array":
            element = self.type(part.element_type, _join(path, "element_type"))
            return Array(element, self._count(part, path))
        if chosen == "packed_array":
            components = tuple(
                self._component(item, f"{path}.component[{i}]") for i, item in enumerate(part.component)
            )
            return PackedArray(components, self._count(part, path))
        return Structure(tuple(self._field(item, f"{path}.field[{i}]") for i, item in enumerate(part.field)))

    def _component(self, message: Any, path: str) -> Component:
        self.closed(message, path)
        return Component(message.name, message.bit_width)

    def _field(self, message: Any, path: str) -> Field:
        self.closed(message, path)
        has_type, has_constant = message.HasField("type"), message.HasField("constant")
        return Field(
            name=message.name,
            type=self.type(message.type, _join(path, "type")) if has_type else None,
            constant=self._constant(message.constant, _join(path, "constant")) if has_constant else None,
            doc=message.doc_string,
        )

    def _count(self, message: Any, path: str) -> Count:
        chosen = message.WhichOneof("count")
        if chosen is None:
            expected = "dimension or dims_index"
            self.add("member_missing", f"an array has neither {expected}", path, expected, "neither")
            return 0
        return Dim(message.dims_index) if chosen == "dims_index" else int(message.dimension)

    def _leaf(self, message: Any, path: str) -> Leaf:
        self.closed(message, path)
        shape = tuple(dim.dim_value for dim in message.shape.dim)
        symbolic = any(dim.WhichOneof("value") != "dim_value" for dim in message.shape.dim)
        if not message.HasField("shape") or symbolic:
            # No shape is one of unknown rank, not the empty one of a scalar.
            self.add("bad_leaf_type", "a scalar has no concrete shape", path, "an empty shape", "another")
        name = _element_name(message.elem_type)
        if name is None:
            self.add("bad_leaf_type", "the element type does not exist", path, "", message.elem_type)
        return Leaf(name or "UNDEFINED", shape)

    def _constant(self, message: Any, path: str) -> Constant:
        self.closed(message, path)
        name = _element_name(message.data_type)
        if name is None:
            self.add("bad_constant", "the element type does not exist", path, "", message.data_type)
        external = message.data_location == onnx.TensorProto.EXTERNAL or len(message.external_data) > 0
        data = data_of(message, name or "")
        if data is None:
            self.add("bad_constant", f"the data is not that of one inline tensor of {name}", path)
        return Constant(name or "UNDEFINED", tuple(message.dims), data or b"", external)

    def closed(self, message: Any, path: str) -> None:
        """A field that the table does not know may carry meaning that would be lost: the numbers are a draft's."""
        for unknown in UnknownFieldSet(message):
            number = unknown.field_number
            self.add("member_unexpected", f"field {number} is unknown here", path, "no such field", number)


def _element_name(number: int) -> str | None:
    try:
        name: str = onnx.TensorProto.DataType.Name(number)
    except ValueError:
        return None
    return name


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
