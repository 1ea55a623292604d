"""Struct types and values as frozen data, malformed ones included: the checker judges them, nothing here does.

A name, a number or a branch that a document leaves out or gets wrong has a place in these classes, so that every fault
reaches the checker and is reported with its code.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar by the name of its type; the shape of a legal one is empty, repetition is always an array."""

    name: str
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Dim:
    """A count that the value gives: `dims[index]`."""

    index: int


Count = int | Dim


@dataclass(frozen=True, slots=True)
class Array:
    """Equal elements one after another, tightly packed in bits."""

    element: "Type"
    count: Count


@dataclass(frozen=True, slots=True)
class Component:
    """An unsigned integer of a bit pattern."""

    name: str
    bits: int


@dataclass(frozen=True, slots=True)
class PackedArray:
    """Equal bit patterns one after another; the first component sits in the lowest bits."""

    components: tuple[Component, ...]
    count: Count


@dataclass(frozen=True, slots=True)
class Constant:
    """An inline tensor that takes no payload: `data` holds its little-endian words, sub-byte ones packed low first."""

    dtype: str
    dims: tuple[int, ...]
    data: bytes
    external: bool = False  # where a document points outside, which none may


@dataclass(frozen=True, slots=True)
class Field:
    """A part of the payload, or a constant; a legal field has exactly one of the two."""

    name: str
    type: "Type | None" = None
    constant: Constant | None = None
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Structure:
    """Fields one after another; nothing aligns anything."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A declaration of the model, by its index."""

    index: int


Type = Leaf | Array | PackedArray | Structure | Reference


@dataclass(frozen=True, slots=True)
class Declaration:
    """A StructTypeProto: the layout of a root and, as serialized FunctionProtos, what it means.

    `type` is None where none of the kinds is set; a legal root is an array, a packed array or a structure.
    """

    type: Type | None
    name: str = ""
    doc: str = ""
    dims_param: tuple[str, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    decoder: bytes | None = None
    encoder: bytes | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """A root among the declarations it may refer to, with the counts of one value."""

    declarations: tuple[Declaration, ...]
    root: int
    dims: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class External:
    """Where a payload lies outside of its value: the entries as given, key by key."""

    entries: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A StructProto: bytes, the choice of their type, and the counts that belong to the value.

    `type` selects a declaration of the model, or is -1 beside an inline `declaration`.
    """

    type: int
    declaration: Declaration | None = None
    data: bytes = b""
    external: External | None = None
    name: str = ""
    doc: str = ""
    dims: tuple[int, ...] = ()
