"""What decoders and encoders must be: their inputs and outputs against the leaves and the payload (struct types 6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import onnx
from google.protobuf.message import DecodeError

from ninfer_core.schemes.functions.restrictions import check_body
from ninfer_core.schemes.structs.faults import Faults
from ninfer_core.schemes.structs.model import Declaration
from ninfer_core.schemes.structs.plans import LeafPlan
from ninfer_core.schemes.structs.proto_texts import broken_text

_UINT8: Final = int(onnx.TensorProto.UINT8)


@dataclass(frozen=True, slots=True)
class _Signature:
    """An element type and a shape whose names were replaced by the counts that they stand for."""

    element: int
    shape: tuple[int, ...]

    def __str__(self) -> str:
        names = onnx.TensorProto.DataType
        name = names.Name(self.element) if self.element in names.values() else str(self.element)
        return f"{name}{list(self.shape)}"


def check_functions(
    declaration: Declaration,
    plans: Sequence[LeafPlan],
    dims: tuple[int, ...],
    payload_bytes: int,
    faults: Faults,
    place: str,
) -> None:
    """The faults of a root's decoder and encoder, whose leaves and payload are known.

    Codes: `decoder_signature`, `decoder_restriction` (of both functions), `encoder_signature`.
    """
    # One name for two parameters says nothing of which count it means.
    names = declaration.dims_param
    counts = {name: n for name, n in zip(names, dims, strict=False) if name and names.count(name) == 1}
    decoded = None
    if declaration.decoder is not None:
        function = _parsed(declaration.decoder, "decoder", faults, place)
        if function is not None:
            decoded = check_decoder(function, plans, counts, faults, f"{place}.decoder")
    if declaration.encoder is not None:
        function = _parsed(declaration.encoder, "encoder", faults, place)
        if function is not None:
            check_encoder(function, decoded, counts, payload_bytes, faults, f"{place}.encoder")


def check_decoder(
    function: onnx.FunctionProto,
    plans: Sequence[LeafPlan],
    counts: Mapping[str, int],
    faults: Faults,
    place: str,
) -> _Signature | None:
    """The faults of a decoder; returns what its output is typed as, where it is."""
    inputs, output = _signature(function, counts, "decoder_signature", faults, place)
    if len(function.input) != len(plans):
        message = "not one input for each leaf."
        faults.add("decoder_signature", place, message, f"{len(plans)} inputs", len(function.input))
    else:
        for name, found, plan in zip(function.input, inputs, plans, strict=True):
            expected = _Signature(plan.element.onnx, plan.shape)
            if found is not None and found != expected:
                message = f"input {name} is not the leaf {plan.path or 'at the root'}."
                faults.add("decoder_signature", place, message, expected, found)
    typed = output is not None and None not in inputs
    check_body(function, counts, typed, "decoder_signature", faults, place)
    return output


def check_encoder(
    function: onnx.FunctionProto,
    decoded: _Signature | None,
    counts: Mapping[str, int],
    payload_bytes: int,
    faults: Faults,
    place: str,
) -> None:
    """The faults of an encoder; `decoded` is the type of the decoder's output, None without a sound one."""
    inputs, output = _signature(function, counts, "encoder_signature", faults, place)
    if decoded is None:
        message = "there is no decoder whose typed output it could take."
        faults.add("encoder_signature", place, message, "a decoder", "none")
    elif len(function.input) != 1:
        faults.add("encoder_signature", place, "not one input.", "1 input", len(function.input))
    elif inputs[0] is not None and inputs[0] != decoded:
        message = "the input is not the decoder's output."
        faults.add("encoder_signature", place, message, decoded, inputs[0])
    expected = _Signature(_UINT8, (payload_bytes,))
    if output is not None and output != expected:
        faults.add("encoder_signature", place, "the output is not the payload.", expected, output)
    typed = output is not None and None not in inputs
    check_body(function, counts, typed, "encoder_signature", faults, place)


def decoded_type(decoder: bytes, counts: Mapping[str, int]) -> str | None:
    """How the one output of a decoder is typed, as `FLOAT[2560]`; None where it is not."""
    faults = Faults()
    function = _parsed(decoder, "decoder", faults, "")
    if function is None:
        return None
    _, output = _signature(function, counts, "decoder_signature", faults, "")
    return None if output is None else str(output)


def _parsed(data: bytes, slot: str, faults: Faults, place: str) -> onnx.FunctionProto | None:
    function = onnx.FunctionProto()
    try:
        function.ParseFromString(data)
    except DecodeError as fault:
        message = f"the bytes are no FunctionProto: {fault}."
        faults.add(f"{slot}_signature", f"{place}.{slot}", message, "FunctionProto", "other bytes")
        return None
    broken = broken_text(function)
    if broken is not None:
        faults.add(f"{slot}_signature", f"{place}.{slot}", f"{broken} is no UTF-8.", "UTF-8", "other bytes")
        return None
    return function


def _signature(
    function: onnx.FunctionProto, counts: Mapping[str, int], code: str, faults: Faults, place: str
) -> tuple[list[_Signature | None], _Signature | None]:
    """How the inputs and the one output are typed; None where they are not, and a fault says why."""
    names = [*function.input, *function.output]
    if len(set(names)) != len(names) or "" in names:
        faults.add(code, place, "an input or output has no name of its own.", "distinct names", names)
    typed = {info.name: info for info in function.value_info}
    if len(typed) != len(function.value_info):
        faults.add(code, place, "two ValueInfos have one name.", "distinct names", list(typed))
    count = len(function.attribute) + len(function.attribute_proto)
    if count:
        faults.add(code, place, "the function has attributes.", "none", count)
    inputs = [_typed(name, typed, counts, code, faults, place) for name in function.input]
    if len(function.output) != 1:
        faults.add(code, place, "not one output.", "1 output", len(function.output))
        return inputs, None
    return inputs, _typed(function.output[0], typed, counts, code, faults, place)


def _typed(
    name: str,
    typed: Mapping[str, onnx.ValueInfoProto],
    counts: Mapping[str, int],
    code: str,
    faults: Faults,
    place: str,
) -> _Signature | None:
    info = typed.get(name)
    if info is None or not info.type.HasField("tensor_type"):
        found = "no ValueInfo" if info is None else "another kind of type"
        faults.add(code, place, f"{name} is not typed as a tensor.", "a tensor type", found)
        return None
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        faults.add(code, place, f"{name} has no shape.", "a shape", "none")
        return None
    shape = []
    for dim in tensor.shape.dim:
        size = dim.dim_value if dim.HasField("dim_value") else counts.get(dim.dim_param)
        if size is None or size < 0:
            found = (dim.dim_param or "nothing") if size is None else str(size)
            message = f"a dimension of {name} is neither a count nor a parameter of the declaration."
            faults.add(code, place, message, ", ".join(counts) or "a count", found)
            return None
        shape.append(size)
    return _Signature(tensor.elem_type, tuple(shape))
