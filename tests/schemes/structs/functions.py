"""Small decoders and encoders, sound and with one fault, put together from ONNX's own messages."""

from collections.abc import Mapping

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, helper

from ninfer_core.schemes.structs.model import Array, Declaration, Field, Leaf, Structure

FLOAT, DOUBLE, UINT8 = int(TensorProto.FLOAT), int(TensorProto.DOUBLE), int(TensorProto.UINT8)
PAIR = Structure(
    (Field("codes", Array(Leaf("UINT8"), 4)), Field("scale", Leaf("FLOAT")))
)  # 8 bytes, two leaves


def function(
    inputs: Mapping[str, tuple[int, list[int]]],
    outputs: Mapping[str, tuple[int, list[int]]],
    nodes: list[NodeProto],
    domains: tuple[str, ...] = (),
) -> FunctionProto:
    """A function of opset 21 whose inputs and outputs are typed."""
    typed = [helper.make_tensor_value_info(name, *of) for name, of in {**inputs, **outputs}.items()]
    imports = [helper.make_opsetid("", 21), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_function("ninfer", "f", list(inputs), list(outputs), nodes, imports, value_info=typed)


LEAVES = {"codes": (UINT8, [4]), "scale": (FLOAT, [])}
VALUES = {"values": (FLOAT, [4])}
CAST = helper.make_node("Cast", ["codes"], ["real"], to=FLOAT)
SCALE = helper.make_node("Mul", ["real", "scale"], ["values"])
DECODER = function(LEAVES, VALUES, [CAST, SCALE])


def encoder(element: int = FLOAT, size: int = 8) -> FunctionProto:
    """Takes four values of a type and gives bytes, which need not mean them."""
    nodes = [
        helper.make_node("Cast", ["values"], ["codes"], to=UINT8),
        helper.make_node("Concat", ["codes"] * (size // 4), ["payload"], axis=0),
    ]
    return function({"values": (element, [4])}, {"payload": (UINT8, [size])}, nodes)


def reshaped(*shape: int) -> FunctionProto:
    """The decoder with its four values in another shape."""
    nodes = [
        CAST,
        helper.make_node("Mul", ["real", "scale"], ["flat"]),
        helper.make_node("Constant", [], ["shape"], value_ints=shape),
        helper.make_node("Reshape", ["flat", "shape"], ["values"]),
    ]
    return function(LEAVES, {"values": (FLOAT, list(shape))}, nodes)


def _with(node: NodeProto, domains: tuple[str, ...] = ()) -> FunctionProto:
    return function(LEAVES, VALUES, [CAST, SCALE, node], domains)


def _external() -> NodeProto:
    tensor = TensorProto(data_type=FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    return helper.make_node("Constant", [], ["more"], value=tensor)


FAULTY = {
    "decoder_input_count": function(
        {"codes": (UINT8, [4])}, VALUES, [helper.make_node("Cast", ["codes"], ["values"], to=FLOAT)]
    ),
    "decoder_two_outputs": function(
        LEAVES,
        {**VALUES, "again": (FLOAT, [4])},
        [CAST, SCALE, helper.make_node("Identity", ["values"], ["again"])],
    ),
    "decoder_custom_op": _with(helper.make_node("Magic", ["real"], ["more"], domain="custom"), ("custom",)),
    "decoder_random": _with(helper.make_node("RandomNormal", [], ["more"], shape=[4])),
    "decoder_subgraph": _with(
        helper.make_node(
            "If",
            [],
            ["more"],
            then_branch=GraphProto(name="yes"),
            else_branch=GraphProto(name="no"),
        )
    ),
    "decoder_external": _with(_external()),
}


def declared(decoder: FunctionProto, encoder_: FunctionProto | None = None) -> Declaration:
    """`PAIR` with its functions."""
    written = None if encoder_ is None else encoder_.SerializeToString()
    return Declaration(PAIR, decoder=decoder.SerializeToString(), encoder=written)
