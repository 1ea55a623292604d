"""What a decoder or an encoder may be: one test for each way in which it may not."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper

from ninfer_core.schemes.functions.build import Builder, Typed, names_of
from ninfer_core.schemes.functions.signatures import check_functions
from ninfer_core.schemes.structs.faults import Faults
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.model import Constant, Declaration
from ninfer_core.schemes.structs.plans import LeafPlan

# {UINT4 codes[n], FLOAT scale, constant FLOAT table[16]} with one parameter n = 6
PLANS = (
    LeafPlan("codes", LEAVES["UINT4"], 4, (6,)),
    LeafPlan("scale", LEAVES["FLOAT"], 32, ()),
    LeafPlan("table", LEAVES["FLOAT"], 32, (16,), constant=Constant("FLOAT", (16,), bytes(64))),
)


def _decoder() -> onnx.FunctionProto:
    builder = Builder(
        "decode",
        [Typed("codes", "UINT4", ("n",)), Typed("scale", "FLOAT"), Typed("table", "FLOAT", (16,))],
    )
    codes, scale, table = builder.inputs
    return builder.finish(builder.multiply(builder.gather(table, codes), scale), ("n",))


def _encoder() -> onnx.FunctionProto:
    builder = Builder("encode", [Typed("values", "FLOAT", ("n",))])
    # What it computes does not matter to the signature; the size does: 6 x 4 + 32 bits.
    return builder.finish(builder.cast(builder.constant([0] * 7, "INT32"), "UINT8"), (7,), "payload")


def _faults(
    decoder: onnx.FunctionProto | bytes | None, encoder: onnx.FunctionProto | bytes | None = None, n: int = 6
) -> list[str]:
    as_bytes = [f.SerializeToString() if isinstance(f, onnx.FunctionProto) else f for f in (decoder, encoder)]
    declaration = Declaration(None, dims_param=("n",), decoder=as_bytes[0], encoder=as_bytes[1])
    faults = Faults()
    check_functions(declaration, PLANS, (n,), 7, faults, "type")
    return [finding.code.removeprefix("struct.") for finding in faults.findings.items]


def test_a_sound_pair_has_no_fault() -> None:
    assert _faults(_decoder()) == []
    assert _faults(_decoder(), _encoder()) == []


def _node(kind: str, inputs: list[str], **attributes: object) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, [f"extra_{kind}"], **attributes)


def _external() -> onnx.TensorProto:
    tensor = helper.make_tensor("", onnx.TensorProto.FLOAT, [1], [1.0])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    return tensor


def _short() -> onnx.TensorProto:
    return onnx.TensorProto(data_type=onnx.TensorProto.FLOAT, dims=[2], raw_data=b"1234")


def _sparse() -> onnx.NodeProto:
    indices = helper.make_tensor("", onnx.TensorProto.INT64, [1], [0])
    return _node("Constant", [], sparse_value=helper.make_sparse_tensor(_external(), indices, [1]))


def _retype(f: onnx.FunctionProto, name: str, element: int, shape: list[object] | None) -> None:
    info = next(info for info in f.value_info if info.name == name)
    info.CopyFrom(helper.make_tensor_value_info(name, element, shape))


BRANCH = helper.make_graph([], "g", [], [])
SIGNATURE, RESTRICTION = "decoder_signature", "decoder_restriction"
DEFECTS: list[tuple[str, str, Callable[[onnx.FunctionProto], object]]] = [
    ("an input too few", SIGNATURE, lambda f: f.input.remove("table")),
    ("an input too many", SIGNATURE, lambda f: f.input.append("more")),
    ("inputs swapped", SIGNATURE, lambda f: f.input.reverse()),
    ("another element type", SIGNATURE, lambda f: _retype(f, "codes", onnx.TensorProto.UINT8, ["n"])),
    ("another shape", SIGNATURE, lambda f: _retype(f, "table", onnx.TensorProto.FLOAT, [15])),
    ("an unknown parameter", SIGNATURE, lambda f: _retype(f, "codes", onnx.TensorProto.UINT4, ["m"])),
    ("no shape", SIGNATURE, lambda f: _retype(f, "codes", onnx.TensorProto.UINT4, None)),
    ("an input without type", SIGNATURE, lambda f: f.value_info.pop(0)),
    ("two outputs", SIGNATURE, lambda f: f.output.append("cast_0")),
    ("no output", SIGNATURE, lambda f: f.output.pop()),
    ("an output that nothing makes", SIGNATURE, lambda f: f.node.pop()),
    ("an attribute", SIGNATURE, lambda f: f.attribute.append("a")),
    ("a result made twice", SIGNATURE, lambda f: f.node.append(f.node[-1])),
    ("another result than declared", SIGNATURE, lambda f: _retype(f, "values", onnx.TensorProto.FLOAT, [7])),
    ("another type than declared", SIGNATURE, lambda f: _retype(f, "values", onnx.TensorProto.DOUBLE, ["n"])),
    ("operands that do not fit", SIGNATURE, lambda f: f.node.insert(0, _node("Add", ["scale", "codes"]))),
    ("an operand of no such type", SIGNATURE, lambda f: f.node.insert(0, _node("Not", ["scale"]))),
    ("an operand too many", SIGNATURE, lambda f: f.node.insert(0, _node("Neg", ["scale", "scale"]))),
    (
        "an attribute that the operator lacks",
        SIGNATURE,
        lambda f: f.node.insert(0, _node("Neg", ["scale"], a=1)),
    ),
    ("a tensor cut short", SIGNATURE, lambda f: f.node.append(_node("Constant", [], value=_short()))),
    ("a custom operator", RESTRICTION, lambda f: f.node.append(_node("Mine", ["scale"], domain="my.ops"))),
    ("an operator of nobody", RESTRICTION, lambda f: f.node.append(_node("Mine", ["scale"]))),
    ("another domain imported", RESTRICTION, lambda f: f.opset_import.append(helper.make_opsetid("my", 1))),
    ("no operators imported", RESTRICTION, lambda f: f.opset_import.pop()),
    ("a version to come", RESTRICTION, lambda f: setattr(f.opset_import[0], "version", 10_000)),
    ("random numbers", RESTRICTION, lambda f: f.node.append(_node("RandomNormal", [], shape=[2]))),
    ("random numbers in disguise", RESTRICTION, lambda f: f.node.append(_node("Bernoulli", ["scale"]))),
    (
        "a subgraph",
        RESTRICTION,
        lambda f: f.node.append(_node("If", ["scale"], then_branch=BRANCH, else_branch=BRANCH)),
    ),
    ("external data", RESTRICTION, lambda f: f.node.append(_node("Constant", [], value=_external()))),
    ("external data in a sparse tensor", RESTRICTION, lambda f: f.node.append(_sparse())),
    ("nodes without end", RESTRICTION, lambda f: f.node.extend([_node("Neg", ["scale"])] * 16_385)),
    ("a capture", RESTRICTION, lambda f: f.node.append(_node("Neg", ["outside"]))),
    ("a result before its time", RESTRICTION, lambda f: f.node.insert(0, _node("Neg", ["mul_2"]))),
]


@pytest.mark.parametrize(("code", "make"), [d[1:] for d in DEFECTS], ids=[d[0] for d in DEFECTS])
def test_a_defect_of_a_decoder_has_its_code(code: str, make: Callable[[onnx.FunctionProto], object]) -> None:
    function = _decoder()
    make(function)
    assert code in _faults(function)


@pytest.mark.parametrize("data", [b"\xff", b"\x0a\x05a", b""], ids=["no message", "cut off", "empty"])
def test_bytes_that_are_no_function_are_a_fault(data: bytes) -> None:
    assert SIGNATURE in _faults(data)
    assert "encoder_signature" in _faults(_decoder(), data)


def test_text_that_is_no_utf8_is_a_fault() -> None:
    data = _decoder().SerializeToString().replace(b"Gather", b"Gathe\xff")
    assert _faults(data) == [SIGNATURE]


def test_an_attribute_of_the_caller_is_refused() -> None:
    function = _decoder()
    node = _node("Cast", ["scale"], to=1)
    node.attribute[0].ref_attr_name = "to"
    function.node.append(node)
    assert RESTRICTION in _faults(function)


def test_an_encoder_takes_what_the_decoder_gives_and_makes_the_payload() -> None:
    other = _encoder()
    _retype(other, "values", onnx.TensorProto.FLOAT16, ["n"])
    assert _faults(_decoder(), other) == ["encoder_signature"]
    other = _encoder()
    _retype(other, "payload", onnx.TensorProto.UINT8, [8])
    assert "encoder_signature" in _faults(_decoder(), other)
    other = _encoder()
    other.input.append("more")
    assert "encoder_signature" in _faults(_decoder(), other)
    assert _faults(None, _encoder()) == ["encoder_signature"]


def test_a_body_that_doubles_a_shape_sixty_times_is_judged_at_once() -> None:
    """Following it would take more memory than there is."""
    function = _decoder()
    shape = helper.make_tensor("", onnx.TensorProto.INT64, [1], [3])
    function.node.append(helper.make_node("Constant", [], ["doubled_0"], value=shape))
    for n in range(60):
        names = [f"doubled_{n}"] * 2, [f"doubled_{n + 1}"]
        function.node.append(helper.make_node("Concat", *names, axis=0))
    function.node.append(helper.make_node("Reshape", ["scale", "doubled_60"], ["shaped"]))
    assert _faults(function) == []


def test_a_body_that_doubles_a_rank_is_refused_before_it_takes_all_memory() -> None:
    function = _decoder()
    start = helper.make_tensor("", onnx.TensorProto.INT64, [1, 1], [0])
    function.node.append(helper.make_node("Constant", [], ["doubled_0"], value=start))
    for n in range(60):
        names = [f"doubled_{n}"] * 2, [f"doubled_{n + 1}"]
        function.node.append(helper.make_node("Gather", *names))
    assert _faults(function) == [SIGNATURE]


def test_a_parameter_binds_to_its_count() -> None:
    assert SIGNATURE in _faults(_decoder(), n=7)  # the leaf has six


def test_input_names_are_identifiers_and_unique() -> None:
    assert names_of(["", ".sign", "a.b", "a_b", "0", "é"]) == (
        "payload",
        "sign",
        "a_b",
        "a_b_2",
        "x0",
        "payload_2",
    )


def test_two_inputs_of_one_name_are_refused_by_the_builder() -> None:
    with pytest.raises(ValueError, match="one name"):
        Builder("f", [Typed("a", "FLOAT"), Typed("a", "FLOAT")])


def test_the_builder_writes_equal_constants_once() -> None:
    builder = Builder("f", [Typed("a", "UINT8", (2,))])
    (a,) = builder.inputs
    assert builder.constant(np.uint8(3), "UINT8") == builder.constant(3, "UINT8")
    assert builder.constant(3, "UINT8") != builder.constant([3], "UINT8")
    assert builder.cast(a, "UINT8") is a
