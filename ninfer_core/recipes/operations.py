"""The operations of recipes, a closed registry, and how a tree of them is read out of a document.

A node is built only if its operands fit; whatever does not fit is a finding.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import prod
from typing import Final

from ninfer_core import strict_json
from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.documents.templates import template_fault
from ninfer_core.layouts.base import MAX_RANK, U64_MAX, Shape
from ninfer_core.recipes.nodes import Cast, ConcatRows, Node, Reshape, Rows, Tensor, Transpose, Widen
from ninfer_core.registry import Closed
from ninfer_core.sources.dtypes import DTYPES
from ninfer_core.sources.json_text import listed
from ninfer_core.strict_json import Json, Members

CASTS: Final = {"BF16": ("F32", "F16"), "I32": ("I64",)}  # result dtype: operand dtypes


@dataclass(frozen=True, slots=True)
class Operation:
    """A named operation: its members beside `op`, and how to read it."""

    name: str
    members: tuple[str, ...]
    read: Callable[["ValueReader", Fields], Node | None]


@dataclass(frozen=True, slots=True)
class ValueReader:
    """Reads the trees of one rule: the roles of the document, the variables of the rule."""

    faults: Faults
    roles: Collection[str]
    variables: Collection[str]

    def read(self, value: Json, path: Path) -> Node | None:
        """The tree at `path`, or None after findings. The depth of `value` is limited."""
        name = value.get("op") if isinstance(value, Members) else None
        if not isinstance(name, str):
            fields = Fields(
                self.faults, value, path, ("op",), tuple(value) if isinstance(value, Members) else ()
            )
            if "op" in fields:
                fields.wrong_type("op", name, "a string")
            return None
        if name not in OPERATIONS:
            known = ", ".join(OPERATIONS.names)
            shown = strict_json.show(name)
            message = f"unknown operation {shown} (known: {known})."
            self.faults.add("operation_unknown", (*path, "op"), message, known, shown)
            return None
        operation = OPERATIONS[name]
        return operation.read(self, Fields(self.faults, value, path, ("op", *operation.members)))

    def operand(self, fields: Fields) -> Node | None:
        """The tree under `of`."""
        return self.read(fields.raw("of"), fields.path("of")) if "of" in fields else None

    def shape(self, fields: Fields) -> Shape | None:
        """The member `shape`: at most sixteen positive sizes."""
        shape = fields.integers("shape", 1)
        if shape is None:
            return None
        if len(shape) > MAX_RANK or prod(shape) > U64_MAX:
            fields.wrong_value("shape", f"at most {MAX_RANK} sizes with a product below 2^64")
            return None
        return shape


def _misfit(fields: Fields, slug: str, message: str, expected: object, found: object) -> None:
    fields.faults.add(slug, fields.at, message, expected, found)


def _tensor(reader: ValueReader, fields: Fields) -> Node | None:
    role, name, dtype = fields.text("from"), fields.text("name"), fields.text("dtype")
    shape = reader.shape(fields)
    sound = True
    if role is not None and role not in reader.roles:
        shown = strict_json.show(role)
        known = listed(reader.roles)
        reader.faults.add("source_undefined", fields.path("from"), f"no source {shown}.", known, shown)
        sound = False
    if name is not None and (fault := template_fault(name, reader.variables)):
        expected = "braces around variables of `each` only"
        reader.faults.add(
            "template_invalid", fields.path("name"), f"{fault}.", expected, strict_json.show(name)
        )
        sound = False
    if dtype is not None and dtype not in DTYPES:
        shown = strict_json.show(dtype)
        known = ", ".join(DTYPES.names)
        reader.faults.add("dtype_unknown", fields.path("dtype"), f"unknown dtype {shown}.", known, shown)
        sound = False
    if role is None or name is None or dtype is None or shape is None or not sound:
        return None
    return Tensor(role, name, shape, dtype)


def _rows(reader: ValueReader, fields: Fields) -> Node | None:
    begin, end, of = fields.integer("begin"), fields.integer("end"), reader.operand(fields)
    if begin is None or end is None or of is None:
        return None
    limit = of.shape[0] if of.shape else 0
    if not begin < end <= limit:
        message = f"rows [{begin}, {end}) of shape {list(of.shape)}."
        _misfit(
            fields, "operation_shape", message, f"a filled range within [0, {limit})", f"[{begin}, {end})"
        )
        return None
    return Rows(begin, of, (end - begin, *of.shape[1:]), of.dtype)


def _concat_rows(reader: ValueReader, fields: Fields) -> Node | None:
    values = fields.array("of")
    if values is None:
        return None
    if not values:
        fields.wrong_value("of", "at least one operand")
        return None
    parts = [reader.read(value, (*fields.path("of"), index)) for index, value in enumerate(values)]
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    first = known[0]
    if any(not part.shape or part.shape[1:] != first.shape[1:] for part in known):
        shapes = strict_json.show([list(part.shape) for part in known])
        _misfit(
            fields,
            "operation_shape",
            "operands differ beyond their first axis.",
            "equal trailing sizes",
            shapes,
        )
        return None
    if any(part.dtype != first.dtype for part in known):
        dtypes = ", ".join(dict.fromkeys(part.dtype for part in known))
        _misfit(fields, "operation_dtype", "operands differ in dtype.", "one dtype", dtypes)
        return None
    shape = (sum(part.shape[0] for part in known), *first.shape[1:])
    if prod(shape) > U64_MAX:
        _misfit(fields, "operation_shape", "too many elements together.", "below 2^64 elements", list(shape))
        return None
    return ConcatRows(tuple(known), shape, first.dtype)


def _reshape(reader: ValueReader, fields: Fields) -> Node | None:
    shape, of = reader.shape(fields), reader.operand(fields)
    if shape is None or of is None:
        return None
    if prod(shape) != prod(of.shape):
        message = f"shape {list(of.shape)} does not become {list(shape)}."
        _misfit(fields, "operation_shape", message, f"{prod(of.shape)} elements", f"{prod(shape)} elements")
        return None
    return Reshape(of, shape, of.dtype)


def _transpose(reader: ValueReader, fields: Fields) -> Node | None:
    axes, of = fields.integers("axes"), reader.operand(fields)
    if axes is None or of is None:
        return None
    if sorted(axes) != list(range(len(of.shape))):
        message = f"axes {strict_json.show(list(axes))} of shape {list(of.shape)}."
        expected = f"each of 0 to {len(of.shape) - 1} once" if of.shape else "no axis"
        _misfit(fields, "operation_shape", message, expected, strict_json.show(list(axes)))
        return None
    return Transpose(axes, of, tuple(of.shape[axis] for axis in axes), of.dtype)


def _widen(reader: ValueReader, fields: Fields) -> Node | None:
    to, of = fields.choice("to", "FP32"), reader.operand(fields)
    if to is None or of is None:
        return None
    if of.dtype != "BF16":
        _misfit(fields, "operation_dtype", f"widen takes BF16, not {of.dtype}.", "BF16", of.dtype)
        return None
    return Widen(of, of.shape, "F32")


def _cast(reader: ValueReader, fields: Fields) -> Node | None:
    to, of = fields.choice("to", *CASTS), reader.operand(fields)
    if to is None or of is None:
        return None
    if of.dtype not in CASTS[to]:
        expected = " or ".join(CASTS[to])
        _misfit(
            fields, "operation_dtype", f"cast to {to} takes {expected}, not {of.dtype}.", expected, of.dtype
        )
        return None
    return Cast(of, of.shape, to)


OPERATIONS: Closed[Operation] = Closed(
    "operation",
    Operation("tensor", ("from", "name", "shape", "dtype"), _tensor),
    Operation("rows", ("begin", "end", "of"), _rows),
    Operation("concat_rows", ("of",), _concat_rows),
    Operation("reshape", ("shape", "of"), _reshape),
    Operation("transpose", ("axes", "of"), _transpose),
    Operation("widen", ("to", "of"), _widen),
    Operation("cast", ("to", "of"), _cast),
)
