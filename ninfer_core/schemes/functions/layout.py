"""The struct type that the parts of a form make, one after another, and the tables beside them as constants."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ninfer_core.schemes.form import Array, Form, Params, Part, Shape
from ninfer_core.schemes.functions.frame import Given, Recipe, bare
from ninfer_core.schemes.run import Refusal
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.model import Array as ArrayType
from ninfer_core.schemes.structs.model import Constant, Declaration, Declared, Field, Leaf, Structure, Type
from ninfer_core.schemes.structs.numbers import element_type

# Leaves of whole bytes by the names of their arrays' types.
_ELEMENTS: Final[Mapping[str, str]] = {
    element_type(leaf).name: leaf.name for leaf in LEAVES if leaf.bits >= 8
}
BLOCKS: Final = "blocks"  # the field of the payload, where constants stand beside it


def layout(
    form: Form, shape: Shape, params: Params, dtypes: Mapping[str, str] | None, recipe: Recipe | None
) -> Declared:
    """The struct type without a decoder; `params` are complete. Raises: SchemeRefused."""
    given = _given(form, dtypes, recipe)
    tables = {} if recipe is None else recipe.tables(params, given)
    if form.declare is not None:
        declared = form.declare(shape, params)
        if not tables:
            return declared
        root = declared.declarations[declared.root]
        fields: list[Field] = [Field(BLOCKS, root.type)]
        others = declared.declarations
        wrapped = replace(root, type=Structure((*fields, *_constants(tables))))
        return replace(
            declared, declarations=(*others[: declared.root], wrapped, *others[declared.root + 1 :])
        )
    stored = form.stored(shape, params)
    _require_sizes(form, given, stored)
    types = {} if recipe is None else recipe.types(params)
    fields = [
        Field(part.name, _array(types.get(part.name) or _element(part, given), stored[part.name]))
        for part in form.parts
        if part.name in given
    ]
    declaration = Declaration(Structure((*fields, *_constants(tables))), name=form.name.upper())
    return Declared((declaration,), 0)


def _given(form: Form, dtypes: Mapping[str, str] | None, recipe: Recipe | None) -> Given:
    if dtypes is not None:
        _require_parts(form, dtypes)
        return dtypes
    usual = () if recipe is None else recipe.parts
    return {part.name: part.dtypes[0] for part in form.parts if not part.optional or part.name in usual}


def _require_parts(form: Form, given: Given) -> None:
    """Raises: SchemeRefused for a part or a type of one that the form does not have."""
    refusal = Refusal(form.name)
    known = {part.name: part for part in form.parts}
    for name, dtype in given.items():
        if name not in known:
            refusal.add(
                "part_unknown", f"{name} is no part of {form.name}", ", ".join(known), name, part=name
            )
        elif dtype not in known[name].dtypes and _float_of_bytes(known[name], dtype) is None:
            expected = " or ".join(known[name].dtypes)
            refusal.add("part_dtype", f"{name} holds {dtype}", expected, dtype, part=name)
    refusal.settle()


def _require_sizes(form: Form, given: Given, stored: Mapping[str, Shape]) -> None:
    """Raises: SchemeRefused for a part whose size only other parts say, where no parameter says it instead."""
    refusal = Refusal(form.name)
    for name in given:
        if name not in stored:
            message = f"neither shape nor parameters fix the size of {name}"
            refusal.add("part_shape", message, "a parameter that says it", "none", part=name)
    refusal.settle()


def _element(part: Part, given: Given) -> str:
    return _ELEMENTS[_float_of_bytes(part, given[part.name]) or given[part.name]]


def _float_of_bytes(part: Part, dtype: str) -> str | None:
    """The small float whose words a part of bytes holds, where it holds one."""
    return next((name for name in part.dtypes if dtype == "uint8" and name.startswith("float8")), None)


def _array(element: str, shape: Shape) -> Type:
    type_: Type = Leaf(element)
    for count in reversed(shape):
        type_ = ArrayType(type_, count)
    return type_


def _constants(tables: Mapping[str, Array]) -> list[Field]:
    return [
        Field(name, constant=Constant(_ELEMENTS[table.dtype.name], table.shape, bare(table).tobytes()))
        for name, table in tables.items()
    ]
