"""Struct types in the notation of section 10, as a closed document; whatever is wrong with it becomes findings.

Types nested deeper than the limit are not read on, so that reading needs no more of the stack than checking.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

from ninfer_core import strict_json
from ninfer_core.documents.fields import Faults, Path
from ninfer_core.schemes.structs.constants import MAX_CONSTANT_RANK, MAX_UINT64
from ninfer_core.schemes.structs.json_functions import read_function
from ninfer_core.schemes.structs.json_members import Object
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.limits import Limits
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
)
from ninfer_core.schemes.structs.numbers import NoSuchNumber, Number, packed
from ninfer_core.strict_json import Json, Members, Real

KINDS: Final = ("array", "packed_array", "bit_packing", "structure", "type_index", "tensor")
EXTRAS: Final = ("name", "doc_string", "dims_param", "metadata_props", "decoder", "encoder")
_NOTHING: Final = Leaf("")  # where a fault was found, or nothing stands
_SPECIAL: Final = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


@dataclass(frozen=True, slots=True)
class TypeReader:
    """Reads types into the model; faults go to `faults`."""

    faults: Faults
    limits: Limits

    def declaration(self, value: Json, path: Path) -> Declaration:
        """A concrete declaration with all that one may carry; without `dims_param` as many as its counts use."""
        if not isinstance(value, Members):
            return Declaration(self.type(value, path, 0))
        fields = Object(self.faults, value, path, (), (*KINDS, "shape", *EXTRAS))
        read = self.kind(fields, path, 0)
        names = fields.strings("dims_param")
        return Declaration(
            type=read,
            name=fields.string("name"),
            doc=fields.string("doc_string"),
            dims_param=implied_parameters(read) if names is None else names,
            metadata=fields.pairs("metadata_props"),
            decoder=read_function(fields, "decoder"),
            encoder=read_function(fields, "encoder"),
        )

    def type(self, value: Json, path: Path, level: int) -> Type:
        """A type inside of another one."""
        if isinstance(value, str):
            return Leaf(value)
        if level > self.limits.nesting:
            message = f"types are nested more than {self.limits.nesting} deep."
            self.faults.add(
                "limit_nesting", path, message, self.limits.nesting, "more", limit=self.limits.nesting
            )
            return _NOTHING
        extras = [name for name in EXTRAS if isinstance(value, Members) and name in value]
        if extras:
            message = f"a type inside another carries {', '.join(extras)}."
            self.faults.add("static_form_extras", path, message, "the kind alone", ", ".join(extras))
        fields = Object(self.faults, value, path, (), (*KINDS, "shape", *EXTRAS))
        return self.kind(fields, path, level) or _NOTHING

    def kind(self, fields: Object, path: Path, level: int) -> Type | None:
        """The one kind that an object gives; None for none."""
        kinds = [kind for kind in KINDS if kind in fields]
        if "shape" in fields and kinds != ["tensor"]:
            self.faults.add(
                "member_unexpected", path, "shape without tensor.", "tensor", "shape", member="shape"
            )
        if len(kinds) > 1:
            message = f"{' and '.join(kinds)} stand together."
            self.faults.add("value_invalid", path, message, "one kind", ", ".join(kinds))
        if len(kinds) != 1:
            return None
        kind = kinds[0]
        inside = (*path, kind)
        match kind:
            case "array":
                return self._array(fields.raw(kind), inside, level)
            case "packed_array" | "bit_packing":
                return self._packed(fields.raw(kind), inside)
            case "structure":
                return self._structure(fields, kind, level)
            case "type_index":
                return Reference(fields.number(kind, -(2**31), 2**31 - 1) or 0)
            case _:
                shape = fields.numbers("shape", 0, MAX_UINT64) or ()
                return Leaf(fields.string(kind), shape)

    def _array(self, value: Json, path: Path, level: int) -> Type:
        fields = Object(self.faults, value, path, ("element",), ("dimension", "dims_index"))
        count = self._count(fields)
        if "element" not in fields:
            return _NOTHING
        return Array(self.type(fields.raw("element"), fields.path("element"), level + 1), count)

    def _packed(self, value: Json, path: Path) -> Type:
        fields = Object(self.faults, value, path, ("components",), ("dimension", "dims_index"))
        components = []
        for index, item in enumerate(fields.array("components") or ()):
            place = (*fields.path("components"), index)
            match item:
                case [str(name), int(bits)] if type(bits) is int:
                    components.append(Component(name, bits))
                case _:
                    message = "a component is a name and a width."
                    self.faults.add("value_type", place, message, "[name, width]", strict_json.show(item))
        return PackedArray(tuple(components), self._count(fields))

    def _count(self, fields: Object) -> Count:
        given = [name for name in ("dimension", "dims_index") if name in fields]
        if len(given) != 1:
            found = " and ".join(given) or "nothing"
            self.faults.add(
                "value_invalid", fields.at, f"{found} gives the count.", "dimension or dims_index", found
            )
            return 0
        if given == ["dims_index"]:
            return Dim(fields.number("dims_index", -(2**31), 2**31 - 1) or 0)
        return fields.number("dimension", 0, MAX_UINT64) or 0

    def _structure(self, fields: Object, kind: str, level: int) -> Type:
        return Structure(
            tuple(
                self._field(item, (*fields.path(kind), index), level)
                for index, item in enumerate(fields.array(kind) or ())
            )
        )

    def _field(self, value: Json, path: Path, level: int) -> Field:
        fields = Object(self.faults, value, path, (), ("name", "type", "constant", "doc_string"))
        inner = self.type(fields.raw("type"), fields.path("type"), level + 1) if "type" in fields else None
        constant = (
            self._constant(fields.raw("constant"), fields.path("constant")) if "constant" in fields else None
        )
        return Field(fields.string("name"), inner, constant, fields.string("doc_string"))

    def _constant(self, value: Json, path: Path) -> Constant:
        fields = Object(self.faults, value, path, ("dtype", "dims"), ("values", "raw_hex", "external"))
        dtype = fields.string("dtype")
        dims = fields.numbers("dims", 0, MAX_UINT64) or ()
        external = fields.flag("external")
        data = b""
        if "raw_hex" in fields and "values" in fields:
            self.faults.add(
                "value_invalid", path, "values and raw_hex stand together.", "one of them", "both"
            )
        elif "raw_hex" in fields:
            data = fields.hex("raw_hex")
        elif "values" in fields and dtype in LEAVES:
            data = self._values(fields, dtype, dims)
        return Constant(dtype, dims, data, external)

    def _values(self, fields: Object, dtype: str, dims: tuple[int, ...]) -> bytes:
        values = fields.array("values") or []
        path = fields.path("values")
        if len(dims) > MAX_CONSTANT_RANK:
            found = f"{len(dims):,} dimensions"
            self.faults.add("bad_constant", path, f"{found}.", MAX_CONSTANT_RANK, found)
            return b""
        total = math.prod(dims)
        if len(values) != total:
            message = f"{len(values):,} values for dimensions {list(dims)}."
            self.faults.add("bad_constant", path, message, total, len(values))
            return b""
        try:
            return packed([_number(value, dtype) for value in values], LEAVES[dtype])
        except NoSuchNumber as none:
            self.faults.add("bad_constant", path, f"{none}.", dtype, str(none))
            return b""


def _number(value: Json, dtype: str) -> Number:
    if isinstance(value, Real):
        return value.value
    if isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    if isinstance(value, bool | int):
        return value
    raise NoSuchNumber(f"{strict_json.show(value)} is no {dtype}")


def implied_parameters(type_: Type | None) -> tuple[str, ...]:
    """Parameters for a declaration that lists none: one for each index that its counts use."""
    used: set[int] = set()
    stack: list[Any] = [type_]
    while stack:
        match stack.pop():
            case Array(element=element, count=count):
                stack.append(element)
                used.update([count.index] if isinstance(count, Dim) else [])
            case PackedArray(count=Dim(index=index)):
                used.add(index)
            case Structure(fields=fields):
                stack.extend(field.type for field in fields)
    return tuple(f"dim{index}" for index in range(len(used)))
