"""What a fuzzer calls with any bytes: they are read and judged, or refused with findings, and nothing else happens."""

# Imported by the checker only where a type has functions; here at once, so that they are fuzzed with coverage as well.
import ninfer_core.schemes.functions.signatures
import ninfer_core.schemes.functions.text  # noqa: F401
from ninfer_core.findings import Findings
from ninfer_core.schemes.structs.check import check_value
from ninfer_core.schemes.structs.conformance import read_cases
from ninfer_core.schemes.structs.containers import check_contained
from ninfer_core.schemes.structs.document import read_document
from ninfer_core.schemes.structs.examine import examine
from ninfer_core.schemes.structs.model import Array, Declaration, Declared, Dim, Leaf, Value
from ninfer_core.schemes.structs.proto_containers import (
    contained_to_proto,
    map_from_proto,
    static_from_proto,
)
from ninfer_core.schemes.structs.proto_reading import ProtoRefused, model_from_proto, value_from_proto
from ninfer_core.schemes.structs.proto_writing import CannotWrite, model_to_proto, value_to_proto
from ninfer_core.schemes.structs.sizes import size_bytes
from ninfer_core.schemes.structs.view import view

MODEL = (
    Declaration(Array(Leaf("UINT8"), 2), "BYTES"),
    Declaration(Array(Leaf("FLOAT"), Dim(0)), "FLOATS", dims_param=("n",)),
)
_UNPACKED = 1 << 20  # payload bytes whose leaves are read as well


def json_form(data: bytes) -> None:
    """A JSON document or a file of cases, examined; then the same value in its protobuf form."""
    document = read_document(data)
    if isinstance(document, Findings):
        _require(bool(document.items), "a document is refused without a finding")
        read_cases(data, "fuzz")
        return
    examined = examine(document)
    _require(examined.size_bits is not None or document.value is None or bool(examined.findings), "no answer")
    if document.value is not None:
        _round_trip(document.model, document.value)
        if document.inline_bytes == len(document.value.data) and not examined.findings:
            _read_leaves(document.model, document.value)


def protobuf_form(data: bytes) -> None:
    """Two bytes that say how long a ModelProto is, that, and a StructProto."""
    cut = 2 + int.from_bytes(data[:2], "little")
    try:
        model = model_from_proto(data[2:cut])
    except ProtoRefused as refused:
        _require(bool(refused.findings.items), "a model is refused without a finding")
        model = ()
    try:
        value = value_from_proto(data[cut:])
    except ProtoRefused as refused:
        _require(bool(refused.findings.items), "a value is refused without a finding")
        return
    _round_trip(model, value)
    if not check_value(model, value):
        _read_leaves(model, value)


def containers_form(data: bytes) -> None:
    """Two bytes that say how long a static TypeProto is, that, and a MapProto, judged beside a model of two."""
    cut = 2 + int.from_bytes(data[:2], "little")
    try:
        static = static_from_proto(data[2:cut])
        cache = map_from_proto(data[cut:])
    except ProtoRefused as refused:
        _require(bool(refused.findings.items), "a container is refused without a finding")
        return
    check_contained(MODEL, static, cache)
    try:
        written = contained_to_proto(cache)
    except CannotWrite:
        return
    _require(contained_to_proto(map_from_proto(written)) == written, "a container is read as something else")


def joined(model: tuple[Declaration, ...], value: Value) -> bytes:
    """The bytes that `protobuf_form` takes. Raises: CannotWrite; OverflowError for a model beyond two bytes."""
    written = model_to_proto(model)
    return len(written).to_bytes(2, "little") + written + value_to_proto(value)


def _round_trip(model: tuple[Declaration, ...], value: Value) -> None:
    try:
        written = model_to_proto(model), value_to_proto(value)
    except CannotWrite:
        return
    again = model_from_proto(written[0]), value_from_proto(written[1])
    # A function may be written in several ways that mean the same; the second writing is the first one's.
    second = model_to_proto(again[0]), value_to_proto(again[1])
    _require(second == written, "what was written is read as something else")


def _read_leaves(model: tuple[Declaration, ...], value: Value) -> None:
    if value.external is not None or len(value.data) > _UNPACKED:
        return
    inline = value.declaration
    declared = (
        Declared(model, value.type, value.dims)
        if inline is None
        else Declared((*model, inline), len(model), value.dims)
    )
    _require(size_bytes(declared) == len(value.data), "a checked value has another size")
    for leaf in view(declared, value.data):
        _require(leaf.array.shape == leaf.plan.shape, f"leaf {leaf.plan.path} has another shape")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise RuntimeError(otherwise)


TARGETS = {"json": json_form, "protobuf": protobuf_form, "containers": containers_form}
