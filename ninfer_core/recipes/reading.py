"""What the readers of operations share: the reader they are handed, and findings about operands that do not fit."""

from typing import Protocol

from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.layouts.base import Shape
from ninfer_core.recipes.bundles import BundleTree, Tree
from ninfer_core.recipes.inputs import Known
from ninfer_core.recipes.nodes import Node
from ninfer_core.strict_json import Json


class Reader(Protocol):
    """`operations.ValueReader`, as the readers of single operations see it."""

    @property
    def faults(self) -> Faults: ...

    @property
    def known(self) -> Known: ...

    def read(self, value: Json, path: Path) -> Tree | None:
        """The tree at `path`."""
        ...

    def operand(self, fields: Fields) -> Tree | None:
        """The tree under `of`."""
        ...

    def shape(self, fields: Fields) -> Shape | None:
        """The member `shape`."""
        ...

    def role(self, fields: Fields) -> str | None:
        """The member `from`."""
        ...

    def template(self, text: str | None, path: Path) -> str | None:
        """A name with sound braces."""
        ...


def misfit(fields: Fields, slug: str, message: str, expected: object, found: object) -> None:
    """A finding about the operation whose members are `fields`."""
    fields.faults.add(slug, fields.at, message, expected, found)


def plain_operand(reader: Reader, fields: Fields) -> Node | None:
    """The tree under `of`, which may not be a quantized matrix: those take row operations only."""
    of = reader.operand(fields)
    if isinstance(of, BundleTree):
        message = "a quantized matrix takes row operations and `invert` only."
        misfit(fields, "operation_dtype", message, "words of one dtype", f"a {of.kind} matrix")
        return None
    return of
