"""Portable decoders and encoders of profiles: walks of steps written down as ONNX functions, typed leaf by leaf."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.decode import Walk
from ninfer_core.schemes.profiles.model import FloatingPoint, Function, Quantization, Sparse, Tiling
from ninfer_core.schemes.profiles.node_ops import NodeOps
from ninfer_core.schemes.profiles.place import root_place
from ninfer_core.schemes.profiles.translate import translate
from ninfer_core.schemes.run import CannotEncode
from ninfer_core.schemes.structs.model import Declared
from ninfer_core.schemes.structs.sizes import size_bytes
from ninfer_core.schemes.structs.view import leaves

if TYPE_CHECKING:
    from onnx import FunctionProto

_NUMBERS: Final = ("FLOAT", "FLOAT16", "BFLOAT16")  # FLOAT holds them all


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


def encoder_of(quantization: Quantization, declared: Declared, logical: Shape) -> "FunctionProto":
    """The encoder of `translate(quantization, logical)`: numbers of the decoder's type in, the payload out (section 6).

    It gives the bytes of `encode.encode`, and stops at values that `encode` refuses. Raises: CannotEncode, which says why
    there is none.
    """
    from ninfer_core.schemes.functions.build import BIT_CASTS, Builder, Typed
    from ninfer_core.schemes.profiles.encode_nodes import NodeEncoder
    from ninfer_core.schemes.profiles.node_payload import Payload

    element, kind = quantization.data_type or "FLOAT", quantization.kind
    if element not in _NUMBERS:
        raise CannotEncode(f"{element} is rounded to FLOAT before it is encoded")
    if isinstance(kind, FloatingPoint) and kind.parameter is not None:
        raise CannotEncode(
            "one declaration serves any count, and no count of bytes follows from a parameter's name"
        )
    builder = Builder(f"{quantization.name}_encode", [Typed("values", element, logical)], BIT_CASTS)
    encoder = NodeEncoder(builder)
    encoder.level(quantization, builder.cast(builder.inputs[0], "FLOAT"), logical, (), "")
    payload = Payload(builder, encoder.words).bytes_of(declared)
    return builder.finish(payload, (size_bytes(declared),), "payload")


def with_functions(quantization: Quantization, logical: Shape) -> Declared:
    """The translation with its decoder and its encoder in the root, if there are. Raises: SchemeRefused, StructFault."""
    declared = translate(quantization, logical)
    decoder = decoder_of(quantization, declared, logical)
    if decoder is None:
        return declared
    try:
        encoder = encoder_of(quantization, declared, logical).SerializeToString(deterministic=True)
    except CannotEncode:
        encoder = None
    root = replace(
        declared.declarations[declared.root],
        decoder=decoder.SerializeToString(deterministic=True),
        encoder=encoder,
    )
    before, after = declared.declarations[: declared.root], declared.declarations[declared.root + 1 :]
    return replace(declared, declarations=(*before, root, *after))
