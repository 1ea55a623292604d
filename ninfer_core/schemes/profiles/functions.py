"""Portable decoders of profiles: the walk of steps written down as an ONNX function, typed leaf by leaf."""

from dataclasses import replace
from typing import TYPE_CHECKING

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.decode import Walk
from ninfer_core.schemes.profiles.model import FloatingPoint, Function, Quantization, Sparse, Tiling
from ninfer_core.schemes.profiles.node_ops import NodeOps
from ninfer_core.schemes.profiles.place import root_place
from ninfer_core.schemes.profiles.translate import translate
from ninfer_core.schemes.structs.model import Declared
from ninfer_core.schemes.structs.view import leaves

if TYPE_CHECKING:
    from onnx import FunctionProto


def is_portable(quantization: Quantization) -> bool:
    """Whether standard operators can say what the numbers are: a custom function hides them."""
    kind = quantization.kind
    if isinstance(kind, Tiling):
        return all(map(is_portable, kind.elem_quant))
    if isinstance(kind, Sparse):
        return is_portable(kind.base)
    return not isinstance(kind, Function)


def decoder_of(quantization: Quantization, declared: Declared, logical: Shape) -> "FunctionProto | None":
    """The decoder of `translate(quantization, logical)`, None for a profile that hides its numbers.

    FLOAT throughout, cast last to the type before quantization where one is stated (R14).
    """
    from ninfer_core.schemes.functions.build import Builder, Typed, names_of

    if not is_portable(quantization):
        return None
    plans = leaves(declared)
    kind = quantization.kind
    parameter = kind.parameter if isinstance(kind, FloatingPoint) else None
    names = names_of([plan.path for plan in plans])
    typed = [
        Typed(name, plan.element.name, plan.shape if parameter is None else (parameter,))
        for name, plan in zip(names, plans, strict=True)
    ]
    builder = Builder(quantization.name, typed)
    inputs = {plan.path: tensor for plan, tensor in zip(plans, builder.inputs, strict=True)}
    made = Walk(NodeOps(builder, inputs)).values(quantization, logical, root_place(declared))
    output = builder.cast(made, quantization.data_type or "FLOAT")
    any_count = parameter is not None and len(logical) == 1
    return builder.finish(output, (parameter or "",) if any_count else logical)


def with_decoder(quantization: Quantization, logical: Shape) -> Declared:
    """The translation with its decoder in the root. Raises: SchemeRefused, StructFault."""
    declared = translate(quantization, logical)
    function = decoder_of(quantization, declared, logical)
    if function is None:
        return declared
    root = replace(
        declared.declarations[declared.root], decoder=function.SerializeToString(deterministic=True)
    )
    before, after = declared.declarations[: declared.root], declared.declarations[declared.root + 1 :]
    return replace(declared, declarations=(*before, root, *after))
