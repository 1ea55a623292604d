"""What readers of rules, values and cross checks share: members that name something, and operands that do not fit."""

from collections.abc import Collection
from typing import Protocol

from ninfer_core import strict_json
from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.documents.templates import template_fault
from ninfer_core.layouts.base import Shape
from ninfer_core.recipes.bundles import BundleTree, Tree
from ninfer_core.recipes.inputs import Known
from ninfer_core.recipes.nodes import Node
from ninfer_core.sources.dtypes import DTYPES
from ninfer_core.sources.json_text import listed
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


def read_role(fields: Fields, member: str, roles: Collection[str]) -> str | None:
    """A member that names a role of the document; None when absent or after a finding."""
    role = fields.text(member)
    if role is not None and role not in roles:
        known, shown = listed(roles), strict_json.show(role)
        fields.faults.add("source_undefined", fields.path(member), f"no source {shown}.", known, shown)
        return None
    return role


def read_dtype(fields: Fields) -> str | None:
    """The member `dtype`, a name of safetensors; None when absent or after a finding."""
    dtype = fields.text("dtype")
    if dtype is not None and dtype not in DTYPES:
        known, shown = ", ".join(DTYPES.names), strict_json.show(dtype)
        fields.faults.add("dtype_unknown", fields.path("dtype"), f"unknown dtype {shown}.", known, shown)
        return None
    return dtype


def sound_template(faults: Faults, text: str | None, path: Path, variables: Collection[str]) -> str | None:
    """A name whose braces hold variables of `each`; None when absent or after a finding."""
    if text is not None and (fault := template_fault(text, variables)):
        expected = "braces around variables of `each` only"
        faults.add("template_invalid", path, f"{fault}.", expected, strict_json.show(text))
        return None
    return text


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
