"""What the fuzzer starts from: the reference cases, and types with decoders in both ways of writing them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ninfer_core.schemes.functions.build import Builder, Typed
from ninfer_core.schemes.functions.text import function_to_text
from ninfer_core.schemes.structs.containers import (
    UNCONSTRAINED,
    Map,
    MapType,
    Optional,
    OptionalType,
    Sequence,
    SequenceType,
    exactly,
)
from ninfer_core.schemes.structs.document import Document, read_document
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.model import Array, Declaration, Leaf, Value
from ninfer_core.schemes.structs.proto_containers import contained_to_proto, static_to_proto
from ninfer_core.schemes.structs.proto_writing import CannotWrite
from tests.fuzz.targets import joined

CASES: Final = Path(__file__).parents[1] / "vectors" / "struct_types" / "cases.json"
_LONGEST: Final = 4096  # bytes of a seed; longer ones mutate slowly and show nothing more


def seeds(form: str) -> Iterator[bytes]:
    """Inputs of one form, none empty."""
    if form == "containers":
        yield from _containers()
        return
    documents = [*_cases(), *_with_functions()]
    for document in documents:
        text = json.dumps(document).encode()
        if form == "json":
            if len(text) <= _LONGEST:
                yield text
        else:
            read = read_document(text)
            if isinstance(read, Document) and read.value is not None:
                yield from _as_protobuf(read.model, read.value)
    if form == "protobuf":
        decoded = Declaration(Array(Leaf("UINT8"), 4), "A", decoder=_functions()[0], encoder=_functions()[1])
        yield joined((decoded,), Value(0, data=b"abcd"))
        yield joined((), Value(-1, decoded, b"abcd"))


def dictionary(form: str) -> str:
    """Words that an input is likely to need, in libFuzzer's syntax."""
    if form != "json":
        return ""
    words = {word for document in _cases() for word in _words(document)} | {leaf.name for leaf in LEAVES}
    words |= {"decoder", "encoder", "onnx_text", "base64", "struct_type", "raw_data_hex", "external_data"}
    return "".join(f'"\\"{word}\\""\n' for word in sorted(words) if word.isascii() and word.isidentifier())


def _as_protobuf(model: tuple[Declaration, ...], value: Value) -> Iterator[bytes]:
    short = replace(value, data=value.data[:_LONGEST])
    try:
        yield joined(model, short)
        if 0 <= value.type < len(model):
            yield joined(model, replace(short, type=-1, declaration=model[value.type]))
    except (CannotWrite, OverflowError):
        return


def _containers() -> Iterator[bytes]:
    pages = Sequence(UNCONSTRAINED, (Value(0, data=b"ab"), Value(1, data=bytes(8), dims=(2,))))
    one = Optional(exactly(0), Value(0, data=b"ab"))
    for element, values in (
        (UNCONSTRAINED, pages),
        (exactly(0), Sequence(exactly(0), ())),
        (SequenceType(UNCONSTRAINED), Sequence(SequenceType(UNCONSTRAINED), (pages, pages))),
        (OptionalType(exactly(0)), Sequence(OptionalType(exactly(0)), (one, Optional(exactly(0), None)))),
        (MapType("INT64", UNCONSTRAINED), Sequence(None, (Map((1, 2), pages),))),
    ):
        count = len(values.values)
        for kind, keys in (("INT64", range(count)), ("STRING", map(str, range(count)))):
            static = static_to_proto(MapType(kind, element))
            yield len(static).to_bytes(2, "little") + static + contained_to_proto(Map(tuple(keys), values))


def _cases() -> list[dict[str, Any]]:
    lists = json.loads(CASES.read_text())
    return [*lists["accept"], *lists["reject"]]


def _functions() -> tuple[bytes, bytes]:
    decode = Builder("decode", [Typed("payload", "UINT8", (4,))])
    decoder = decode.finish(decode.multiply(decode.cast(decode.inputs[0], "FLOAT"), 0.5), (4,))
    encode = Builder("encode", [Typed("values", "FLOAT", (4,))])
    encoder = encode.finish(encode.cast(encode.multiply(encode.inputs[0], 2.0), "UINT8"), (4,), "payload")
    return decoder.SerializeToString(), encoder.SerializeToString()


def _with_functions() -> Iterator[dict[str, Any]]:
    import base64

    import onnx

    decoder, encoder = _functions()
    text = function_to_text(onnx.FunctionProto.FromString(decoder))
    array = {"array": {"element": "UINT8", "dimension": 4}}
    coded = {"base64": base64.b64encode(encoder).decode()}
    for written in ({"onnx_text": text}, {"base64": base64.b64encode(decoder).decode()}):
        yield {
            "types": [{**array, "decoder": written, "encoder": coded}],
            "root": 0,
            "payload_hex": "01020304",
        }


def _words(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        for name, item in document.items():
            yield name
            yield from _words(item)
    elif isinstance(document, list):
        for item in document:
            yield from _words(item)
