"""Where the leaves of a level are: the way to its fields, the way to its constants, and the counts around it."""

from dataclasses import dataclass, replace

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.level import peeled
from ninfer_core.schemes.structs.model import Declared, Reference, Structure


@dataclass(frozen=True, slots=True)
class Place:
    """A declaration where it occurs. Leaves below it have the dims `batch` first.

    Constants of a declaration that occurs more than once have one leaf, below its first place (struct types 5).
    """

    path: str
    batch: Shape
    first: dict[str, str]

    def leaf(self, name: str) -> str:
        """The path of a payload field."""
        return f"{self.path}.{name}" if self.path else name

    def component(self, name: str) -> str:
        """The path of a packed component right below."""
        return f"{self.path}.{name}"

    def constant(self, name: str) -> str:
        """The path of a constant."""
        first = self.first.get(self.path, self.path)
        return f"{first}.{name}" if first else name

    def below(self, name: str, *counts: int) -> "Place":
        """The declaration that a field repeats."""
        return replace(self, path=self.leaf(name), batch=(*self.batch, *counts))

    def repeated(self, count: int) -> "Place":
        """The declaration that a bare array repeats."""
        return replace(self, batch=(*self.batch, count))


def root_place(declared: Declared) -> Place:
    """The place of the root, with the first place of each declaration that it reaches."""
    first: dict[str, str] = {}
    seen: dict[int, str] = {}

    def visit(index: int, path: str) -> None:
        first[path] = seen.setdefault(index, path)
        type_ = declared.declarations[index].type
        if type_ is None:
            return
        if isinstance(type_, Structure):
            for item in type_.fields:
                if item.type is not None:
                    element = peeled(item.type)[0]
                    if isinstance(element, Reference):
                        visit(element.index, f"{path}.{item.name}" if path else item.name)
            return
        element = peeled(type_)[0]
        if isinstance(element, Reference):
            # A bare array adds nothing to the path, and has no constants of its own.
            visit(element.index, path)

    visit(declared.root, "")
    return Place("", (), first)
