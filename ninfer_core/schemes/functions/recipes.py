"""Every decoder that is written with the builder, by the name of its form."""

from collections.abc import Mapping
from typing import Final

import onnx

from ninfer_core.schemes.form import Form, Params, Shape
from ninfer_core.schemes.functions.build import OPSET, Builder, Typed, names_of
from ninfer_core.schemes.functions.floating import FLOATING
from ninfer_core.schemes.functions.frame import Frame, Recipe
from ninfer_core.schemes.functions.ggml import GGML
from ninfer_core.schemes.functions.ggml_iq import GGML_IQ
from ninfer_core.schemes.functions.integer import INTEGER
from ninfer_core.schemes.functions.lattice import LATTICE
from ninfer_core.schemes.functions.others import OTHERS
from ninfer_core.schemes.functions.spqr import SPQR
from ninfer_core.schemes.structs.model import Declared
from ninfer_core.schemes.structs.view import leaves

RECIPES: Final[Mapping[str, Recipe]] = {**GGML, **GGML_IQ, **INTEGER, **FLOATING, **OTHERS, **LATTICE, **SPQR}


def built(form: Form, recipe: Recipe, declared: Declared, shape: Shape, params: Params) -> onnx.FunctionProto:
    """The decoder of a recipe for the leaves of a struct type; its output is FLOAT of the logical shape (R14)."""
    plans = leaves(declared)
    names = names_of([plan.path for plan in plans])
    typed = [Typed(name, plan.element.name, plan.shape) for name, plan in zip(names, plans, strict=True)]
    builder = Builder(f"decode_{form.name}", typed, recipe.opset or OPSET)
    last = [plan.path.rpartition(".")[2] for plan in plans]
    frame = Frame(
        builder,
        dict(zip(last, builder.inputs, strict=True)),
        {name: plan.shape for name, plan in zip(last, plans, strict=True)},
        shape,
        params,
    )
    return builder.finish(builder.reshape(recipe.decode(frame), *shape), shape)
