"""The operations of recipes, a closed registry, and how a tree of them is read out of a document.

A node is built only if its operands fit; whatever does not fit is a finding.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import prod

from ninfer_core import strict_json
from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.layouts.base import MAX_RANK, U64_MAX, Shape
from ninfer_core.recipes import matrices, moves, vectors
from ninfer_core.recipes.bundles import Tree
from ninfer_core.recipes.inputs import Known
from ninfer_core.recipes.reading import read_role, sound_template
from ninfer_core.registry import Closed
from ninfer_core.strict_json import Json, Members


@dataclass(frozen=True, slots=True)
class Operation:
    """A named operation: its members beside `op`, and how to read it."""

    name: str
    members: tuple[str, ...]
    read: Callable[["ValueReader", Fields], Tree | None]
    optional: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ValueReader:
    """Reads the trees of one rule, whose variables are `variables`."""

    faults: Faults
    known: Known
    variables: Collection[str]

    def read(self, value: Json, path: Path) -> Tree | None:
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
        fields = Fields(self.faults, value, path, ("op", *operation.members), operation.optional)
        return operation.read(self, fields)

    def operand(self, fields: Fields) -> Tree | None:
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

    def role(self, fields: Fields) -> str | None:
        """The member `from`: a role of the document."""
        return read_role(fields, "from", self.known.roles)

    def template(self, text: str | None, path: Path) -> str | None:
        """A name whose braces hold variables of the rule."""
        return sound_template(self.faults, text, path, self.variables)


OPERATIONS: Closed[Operation] = Closed(
    "operation",
    Operation("tensor", ("from", "name", "shape", "dtype"), matrices.read_tensor),
    Operation("nvfp4_matrix", ("from", "prefix", "shape"), matrices.read_nvfp4, ("suffixes",)),
    Operation("fp8_row_matrix", ("from", "prefix", "shape"), matrices.read_fp8_rows),
    Operation("rows", ("begin", "end", "of"), moves.read_rows),
    Operation("row_blocks", ("blocks", "stride", "begin", "end", "of"), moves.read_row_blocks),
    Operation("concat_rows", ("of",), moves.read_concat_rows),
    Operation("reshape", ("shape", "of"), moves.read_reshape),
    Operation("index", ("axis", "at", "of"), moves.read_index),
    Operation("transpose", ("axes", "of"), moves.read_transpose),
    Operation("widen", ("to", "of"), vectors.read_widen),
    Operation("cast", ("to", "of"), vectors.read_cast),
    Operation("invert", ("of",), vectors.read_invert),
    Operation("gather_rows", ("ids", "of"), moves.read_gather_rows),
    Operation("equal_scalar", ("from", "names"), vectors.read_equal_scalar),
    Operation(
        "ranked_token_ids",
        ("ranking", "row_width", "candidates", "count", "special_ids_from"),
        vectors.read_ranked_token_ids,
    ),
)
