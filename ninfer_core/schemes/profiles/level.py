"""One declaration of a struct type, taken apart: payload fields by name, parameters, and whatever nobody asked for."""

from dataclasses import dataclass
from typing import Any

from ninfer_core.schemes.profiles.checks import PREFIX
from ninfer_core.schemes.profiles.faults import refusal
from ninfer_core.schemes.profiles.parameters import Read, of_constant, of_entry
from ninfer_core.schemes.run import MAX_RANK, SchemeRefused
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.model import (
    Array,
    Declaration,
    Dim,
    Leaf,
    Reference,
    Structure,
    Type,
)

SCALARS = {leaf.onnx: leaf.name for leaf in LEAVES}


@dataclass(slots=True)
class Level:
    """What is left of a declaration; kinds take out what is theirs, and nothing may remain."""

    declaration: Declaration
    payload: dict[str, Type]
    read: Read
    metadata: list[tuple[str, str]]
    bare: bool

    @property
    def name(self) -> str:
        """The declaration's name."""
        return self.declaration.name

    def has(self, name: str) -> bool:
        """Whether a parameter of this name was found."""
        return name in self.read.constants

    def need(self, name: str, dtype: str) -> Any:
        """A parameter that is one number. Raises: SchemeRefused."""
        value = self.read.one(name, dtype)
        if value is None:
            raise self.unknown(f"{name} is no {dtype} scalar constant")
        return value

    def list(self, name: str, dtype: str) -> tuple[Any, ...]:
        """A parameter that is a list, empty where it is absent."""
        return self.read.take(name, dtype) or ()

    def axis(self) -> int:
        """The axis of a quantization. Raises: SchemeRefused where no tensor has so many."""
        number: int = self.need("axis", "INT32")
        if not -1 <= number < MAX_RANK:
            raise refusal(
                self.name, "axis_out_of_range", "axis", "no axis of a tensor", f"-1 to {MAX_RANK - 1}", number
            )
        return number

    def scalar_type(self, name: str) -> str:
        """A parameter that is the number of a scalar type. Raises: SchemeRefused."""
        number = self.need(name, "INT32")
        if number not in SCALARS:
            raise self.unknown(f"{name} {number} is the number of no scalar")
        return SCALARS[number]

    def part(self, name: str) -> Type:
        """A payload field. Raises: SchemeRefused."""
        if name not in self.payload:
            raise self.unknown(f"there is no field {name}")
        return self.payload.pop(name)

    def leaf(self, name: str) -> tuple[str, tuple[int, ...]]:
        """A payload field that repeats a scalar: its name and the counts, outermost first. Raises: SchemeRefused."""
        element, counts = peeled(self.part(name))
        if not isinstance(element, Leaf):
            raise self.unknown(f"{name} is no array of scalars")
        return element.name, counts

    def reference(self, name: str) -> tuple[int, tuple[int, ...]]:
        """A payload field that repeats a declaration. Raises: SchemeRefused."""
        element, counts = peeled(self.part(name))
        if not isinstance(element, Reference):
            raise self.unknown(f"{name} is no array of a declaration")
        return element.index, counts

    def differs(self, part: str, message: str, expected: object, found: object) -> SchemeRefused:
        """The exception for a constant that contradicts the structure."""
        return refusal(self.name, "redundant_differs", part, message, expected, found)

    def unknown(self, message: str) -> SchemeRefused:
        """The exception for a declaration that no profile gives."""
        return refusal(
            self.name or "a declaration", "structure_unknown", "", message, "a profile's structure"
        )


def peeled(type_: Type) -> tuple[Type, tuple[int, ...]]:
    """What arrays repeat, and their constant counts, outermost first."""
    counts: list[int] = []
    while isinstance(type_, Array) and not isinstance(type_.count, Dim):
        counts.append(type_.count)
        type_ = type_.element
    return type_, tuple(counts)


def level_of(declaration: Declaration) -> Level:
    """A declaration taken apart. Raises: SchemeRefused for a constant or an entry that is no parameter."""
    read, metadata, payload = Read(), [], {}
    structure = declaration.type if isinstance(declaration.type, Structure) else None
    for item in structure.fields if structure else ():
        if item.constant is None and item.type is not None:
            payload[item.name] = item.type
            continue
        parameter = None if item.constant is None else of_constant(item.name, item.constant)
        if parameter is None:
            message = "the constant is none of a profile"
            raise refusal(declaration.name or "a declaration", "structure_unknown", item.name, message)
        read.constants[item.name] = parameter
    for key, value in declaration.metadata:
        if not key.startswith(PREFIX):
            metadata.append((key, value))
            continue
        parameter = of_entry(key, value)
        if parameter is None or parameter.name in read.constants:
            message = "the entry is no parameter, or one that a constant states too"
            raise refusal(declaration.name or "a declaration", "metadata_illegal", key, message)
        read.constants[parameter.name] = parameter
        read.kept.add(parameter.name)
    payload.pop("padding", None)  # translating again proves that it belongs there
    return Level(declaration, payload, read, metadata, structure is None)
