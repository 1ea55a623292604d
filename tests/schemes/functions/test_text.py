"""The text form of functions: it says the types, reads back, and takes no text that would exhaust ONNX's parser."""

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.schemes.functions.build import Builder, Typed
from ninfer_core.schemes.functions.decoders import decoder_of
from ninfer_core.schemes.functions.text import TextRefused, function_from_text, function_to_text
from tests.schemes.functions.requests import Request, requests

ONE_EACH = {one.form.name: one for one in requests()}
TEXT = '<domain: "", opset_import: ["" : 25]>\nf (uint8[4] x, float s) => (float[4] y)\n{ c = Cast <to = 1> (x) y = Mul (c, s) }'


@pytest.mark.parametrize("request_", ONE_EACH.values(), ids=ONE_EACH)
def test_every_decoder_reads_back_from_its_text(request_: Request) -> None:
    function = decoder_of(request_.form, request_.shape, request_.params)
    assert function is not None
    assert normal(function_from_text(function_to_text(function))) == normal(function.SerializeToString())


def normal(data: bytes) -> onnx.FunctionProto:
    """The function without what text has no place for: names of constants that are empty either way."""
    function = onnx.FunctionProto.FromString(data)
    for node in function.node:
        node.ClearField("domain")
        for attribute in node.attribute:
            if attribute.HasField("t"):
                attribute.t.ClearField("name")
    function.value_info.sort(key=lambda info: info.name)
    return function


def test_the_text_says_the_types() -> None:
    builder = Builder("f", [Typed("a", "UINT8", (3,)), Typed("n", "FLOAT", ("rows", 2))])
    function = builder.finish(builder.cast(builder.inputs[0], "FLOAT"), (3,))
    assert "f (uint8[3] a, float[rows,2] n) => (float[3] values)" in function_to_text(function)


def test_comments_are_left_out_and_literals_are_not() -> None:
    commented = TEXT.replace("\n{", ' # "(((" \n{')
    assert function_from_text(commented) == function_from_text(TEXT)
    named = TEXT.replace(" x", ' "a#(b"').replace("(x)", '("a#(b")')
    assert onnx.FunctionProto.FromString(function_from_text(named)).input[0] == "a#(b"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f",
        TEXT.replace("uint8[4]", "seq(" * 100_000 + "float" + ")" * 100_000),
        TEXT.replace("uint8[4]", '")))" seq(' * 40 + "float" + ")" * 40),
        "<" * 200_000,
        TEXT + '"',
        TEXT.replace(" x", r' "\"x"'),
        TEXT.replace(" x", ' "\ud800"'),
        TEXT.replace("25", "25" * 40),
        TEXT.replace("to = 1", "to = " + "9" * 400),
    ],
    ids=[
        "empty",
        "a name",
        "deep",
        "deep with literals",
        "open",
        "literal",
        "escape",
        "surrogate",
        "version",
        "number",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(TextRefused):
        function_from_text(text)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([*'"#()[]{}<>=,:@- \n1x', "float", "seq(", "Cast", TEXT]), max_size=12).map(
        "".join
    )
)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        data = function_from_text(text)
    except TextRefused:
        return
    onnx.FunctionProto.FromString(data)
