"""The protobuf form of struct types: names and numbers of every message, field and enum value, in one table.

The draft assigns the numbers of StructProto, StructTypeProto, Array, PackedArray, Component, Field and AttributeProto
(struct types 1). Where it writes `<N>`, or says nothing, the number is ours: above all that ONNX assigns, so that no
later ONNX reads one of ours as its own, and small in messages that are wholly new. A change of the draft is a change
of these rows.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Row:
    """One field: `type` is a scalar type of protobuf or the name of a message in the package `onnx`."""

    name: str
    number: int
    type: str
    repeated: bool = False
    oneof: str = ""
    ours: bool = False  # the draft assigns no number


NEW_MESSAGES: Final[dict[str, tuple[Row, ...]]] = {
    "StructProto": (
        Row("type", 1, "int32"),
        Row("struct_type", 2, "StructTypeProto"),
        Row("raw_data", 3, "bytes"),
        Row("external_data", 4, "StringStringEntryProto", repeated=True),
        Row("name", 5, "string"),
        Row("doc_string", 6, "string"),
        Row("dims", 7, "uint64", repeated=True),
    ),
    "StructTypeProto": (
        Row("array", 1, "Array", oneof="kind"),
        Row("structure", 2, "Structure", oneof="kind"),
        Row("packed_array", 3, "PackedArray", oneof="kind"),
        Row("type_index", 5, "int32", oneof="kind"),
        Row("decoder", 6, "FunctionProto"),
        Row("encoder", 7, "FunctionProto"),
        Row("name", 8, "string"),
        Row("doc_string", 9, "string"),
        Row("metadata_props", 10, "StringStringEntryProto", repeated=True),
        Row("dims_param", 11, "string", repeated=True),
    ),
    "Array": (
        Row("element_type", 1, "TypeProto"),
        Row("dimension", 2, "uint64", oneof="count"),
        Row("dims_index", 3, "int32", oneof="count"),
    ),
    "PackedArray": (
        Row("component", 1, "Component", repeated=True),
        Row("dimension", 2, "uint64", oneof="count"),
        Row("dims_index", 3, "int32", oneof="count"),
    ),
    "Component": (
        Row("name", 1, "string"),
        Row("bit_width", 2, "int32"),
    ),
    "Structure": (Row("field", 1, "Field", repeated=True, ours=True),),
    "Field": (
        Row("name", 1, "string"),
        Row("type", 2, "TypeProto"),
        Row("doc_string", 3, "string"),
        Row("constant", 4, "TensorProto"),
    ),
}

# Fields that ONNX's own messages gain.
ADDED_FIELDS: Final[dict[str, tuple[Row, ...]]] = {
    "ModelProto": (Row("struct_types", 1001, "StructTypeProto", repeated=True, ours=True),),
    "TypeProto": (Row("struct_type", 1001, "StructTypeProto", oneof="value", ours=True),),
    "SequenceProto": (
        Row("struct_values", 1001, "StructProto", repeated=True, ours=True),
        Row("value_type", 1002, "TypeProto", ours=True),
    ),
    "OptionalProto": (
        Row("struct_value", 1001, "StructProto", ours=True),
        Row("value_type", 1002, "TypeProto", ours=True),
    ),
    "AttributeProto": (
        Row("struct", 24, "StructProto"),
        Row("structs", 25, "StructProto", repeated=True),
    ),
}

# Values that enums of ONNX's messages gain: message, enum, name, number.
ADDED_VALUES: Final[tuple[tuple[str, str, str, int], ...]] = (
    ("AttributeProto", "AttributeType", "STRUCT", 15),
    ("AttributeProto", "AttributeType", "STRUCTS", 16),
    ("SequenceProto", "DataType", "STRUCT", 1001),
    ("OptionalProto", "DataType", "STRUCT", 1001),
)
