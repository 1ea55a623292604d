"""The struct type of a stored form with the decoder that gives it meaning, and the value that its parts make."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ninfer_core.schemes.form import Form, Parts, Shape
from ninfer_core.schemes.functions.frame import NotDecodable
from ninfer_core.schemes.functions.layout import layout
from ninfer_core.schemes.functions.recipes import RECIPES, built
from ninfer_core.schemes.run import complete
from ninfer_core.schemes.structs.model import Declared


def declared_of(
    form: Form, shape: Shape, params: Mapping[str, Any], dtypes: Mapping[str, str] | None = None
) -> Declared:
    """The struct type of a form's parts one after another, with its decoder where there is one.

    `dtypes` names the parts that are there and their numpy types; without it, those that the form usually has, in the
    first type of each. Parts that are too few to decode make a type without decoder. Raises: SchemeRefused for
    parameters, a shape or parts that the form does not take.
    """
    complete_params = complete(form, params)
    recipe = RECIPES.get(form.name)
    declared = layout(form, shape, complete_params, dtypes, recipe)
    root = declared.declarations[declared.root]
    if recipe is None or root.decoder is not None:
        return declared
    try:
        decoder = built(form, recipe, declared, shape, complete_params)
    except NotDecodable:
        return declared
    declarations = list(declared.declarations)
    declarations[declared.root] = replace(root, decoder=decoder.SerializeToString(deterministic=True))
    return replace(declared, declarations=tuple(declarations))


def dtypes_of(parts: Parts) -> dict[str, str]:
    """Which parts are there, and in which types."""
    return {name: array.dtype.name for name, array in parts.items()}


def payload_of(form: Form, parts: Parts) -> bytes:
    """The bytes of the parts in the order of the form: what a value of the struct type holds."""
    ordered = (parts[part.name] for part in form.parts if part.name in parts)
    return b"".join(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes() for array in ordered)
