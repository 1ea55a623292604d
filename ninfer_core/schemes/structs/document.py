"""The JSON document of struct types: declarations, one value or static type, and what its author expects of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ninfer_core.documents.fields import Faults
from ninfer_core.findings import Findings
from ninfer_core.schemes.structs.constants import MAX_UINT64
from ninfer_core.schemes.structs.json_members import Object
from ninfer_core.schemes.structs.json_types import EXTRAS, KINDS, TypeReader
from ninfer_core.schemes.structs.limits import LIMITS, Limits
from ninfer_core.schemes.structs.model import Declaration, External, Value
from ninfer_core.sources.json_text import parse_object
from ninfer_core.strict_json import Json, Members

MAX_DOCUMENT_BYTES: Final = 256 << 20  # constants of 64 MiB are spelled in less
_MOST_VALUES: Final = (
    8_000_000  # read, a value takes a hundred times more memory than the two bytes that spell it
)
_MOST_CONTAINERS: Final = 1_000_000  # objects and arrays, which take more, and time for each
MAX_JSON_DEPTH: Final = 480  # more than types as deep as the limit need
_DESCRIBED: Final = ("generator", "profile", "decoder")  # situations in words, as reference cases name them
_PAYLOADS: Final = ("payload_hex", "payload_bytes", "payload_file")
_VALUE: Final = (
    "type",
    "struct_type",
    "raw_data_hex",
    "raw_data_bytes",
    "external_data",
    "dims",
    "name",
    "doc_string",
)
LEAF_MEMBERS: Final = ("path", "elem_type", "shape", "raw_bits", "values", "n_values", "constant")
_MEMBERS: Final = (
    *("name", "note", "description", "types", "names", "root", "dims", "dims_param", "value", "static"),
    *_PAYLOADS,
    *("size_bits", "size_bytes", "leaves", "code"),
    *_DESCRIBED,
)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a document says about itself, member by member; None where it does not say."""

    size_bits: int | None = None
    size_bytes: int | None = None
    leaves: tuple[Mapping[str, Json], ...] | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """One document, read.

    A `value` without a payload (`inline_bytes` None) asks about its type and counts alone. `payload_file` names a file
    that holds the payload; who reads it sets `inline_bytes`.
    """

    name: str
    model: tuple[Declaration, ...]
    value: Value | None = None
    inline_bytes: int | None = None
    payload_file: str | None = None
    static: Declaration | None = None
    named: bool = False  # the model's names are part of the question
    described: bool = False  # a situation in words, with nothing to check
    expected: Expected = Expected()


def read_document(text: bytes, file: str = "document", limits: Limits = LIMITS) -> Document | Findings:
    """The document that a JSON text spells, or what is wrong with it: `structure.json_*` and `struct.*`."""
    findings = Findings()
    root = parse_text(text, file, findings)
    return findings if root is None else read_members(root, file, limits)


def parse_text(text: bytes, file: str, findings: Findings) -> Members | None:
    """The object that a text spells; None where findings say what is wrong with it, also that it is far too large."""
    for what, most, found in (
        ("bytes", MAX_DOCUMENT_BYTES, len(text)),
        ("objects and arrays", _MOST_CONTAINERS, text.count(b"{") + text.count(b"[")),
        ("values", _MOST_VALUES, text.count(b",")),
    ):
        if found > most:
            findings.add(
                "struct.document_malformed",
                f"{file} has more {what} than any document that is checked here.",
                where={"file": file, "path": "$"},
                expected=f"at most {most:,}",
                found=f"{found:,}",
            )
            return None
    root = parse_object(text, MAX_JSON_DEPTH, file, findings)
    return None if findings.items else root


def read_members(
    root: Json, file: str, limits: Limits = LIMITS, path: tuple[str | int, ...] = ()
) -> Document | Findings:
    """The same of an object that was parsed before; `path` is where it stands in its file."""
    findings = Findings()
    faults = Faults(file, findings, "struct")
    document = _Reader(faults, TypeReader(faults, limits)).document(root, path)
    return findings if findings.items else document


@dataclass(frozen=True, slots=True)
class _Reader:
    faults: Faults
    types: TypeReader

    def document(self, root: Json, path: tuple[str | int, ...]) -> Document:
        fields = Object(self.faults, root, path, (), _MEMBERS)
        model = self._model(fields)
        value, inline = self._value(fields)
        asked = ("types", "names", "value", "static")
        described = not any(name in fields for name in asked) and any(
            name in fields for name in (*_DESCRIBED, "code")
        )
        if not described:
            for name in _DESCRIBED:
                if name in fields:
                    message = f"{name} stands beside types; a decoder is a member of its declaration."
                    self.faults.add("member_unexpected", fields.path(name), message, "", name, member=name)
            if not any(name in fields for name in asked):
                self.faults.add("member_missing", path, "no types.", "types", "nothing", member="types")
        return Document(
            name=fields.string("name"),
            model=model,
            value=value,
            inline_bytes=inline,
            payload_file=fields.text("payload_file"),
            static=self._static(fields),
            named="names" in fields,
            described=described,
            expected=self._expected(fields),
        )

    def _model(self, fields: Object) -> tuple[Declaration, ...]:
        model = [
            self.types.declaration(item, (*fields.path("types"), index))
            for index, item in enumerate(fields.array("types") or ())
        ]
        names = fields.strings("names")
        if names is not None and "types" not in fields:
            model = [Declaration(None, name=name) for name in names]
        elif names is not None:
            model = self._named(fields, model, "names", names)
        parameters = fields.array("dims_param")
        if parameters is not None:
            lists = [entry if _are_texts(entry) else None for entry in parameters]
            if None in lists:
                fields.wrong_value("dims_param", "an array of arrays of strings, one for each of types")
            else:
                model = self._named(fields, model, "dims_param", [tuple(entry or ()) for entry in lists])
        return tuple(model)

    def _named(self, fields: Object, model: list[Declaration], member: str, given: Any) -> list[Declaration]:
        # A list beside `types` says of every declaration what its own object does not.
        if len(given) != len(model):
            fields.wrong_value(member, f"{len(model)} entries, one for each of types")
            return model
        slot = "name" if member == "names" else member
        for index, item in enumerate(fields.array("types") or ()):
            if isinstance(item, Members) and slot in item:
                message = f"{slot} is given in types[{index}] as well."
                self.faults.add("value_invalid", fields.path(member), message, "one of them", "both")
        return [replace(one, **{slot: entry}) for one, entry in zip(model, given, strict=True)]

    def _value(self, fields: Object) -> tuple[Value | None, int | None]:
        payloads = [name for name in _PAYLOADS if name in fields]
        if len(payloads) > 1:
            found = " and ".join(payloads)
            self.faults.add("value_invalid", fields.at, f"{found} stand together.", "one payload", found)
        index = fields.number("root", -(2**31), 2**31 - 1)
        dims = fields.numbers("dims", 0, MAX_UINT64) or ()
        inline = fields.number("payload_bytes", 0, MAX_UINT64)
        data = fields.hex("payload_hex")
        if "value" not in fields:
            if index is None:
                for name in ("dims", *payloads):
                    if name in fields:
                        message = f"{name} is of a value, and nothing selects its type."
                        self.faults.add(
                            "member_missing", fields.path(name), message, "root", "nothing", member="root"
                        )
                return None, None
            return Value(index, data=data, dims=dims), len(data) if "payload_hex" in fields else inline
        value, inline = self._whole_value(
            Object(self.faults, fields.raw("value"), fields.path("value"), ("type",), _VALUE)
        )
        again = [name for name in ("dims", *_PAYLOADS) if name in fields]
        if index is not None and index != value.type:
            again.append("root")
        for name in again:
            message = f"{name} is said by value."
            self.faults.add("value_invalid", fields.path(name), message, "one of them", name)
        return value, inline

    def _whole_value(self, fields: Object) -> tuple[Value, int]:
        declaration = None
        if "struct_type" in fields:
            declaration = self.types.declaration(fields.raw("struct_type"), fields.path("struct_type"))
        data = fields.hex("raw_data_hex")
        length = fields.number("raw_data_bytes", 0, MAX_UINT64)
        if "raw_data_bytes" in fields and "raw_data_hex" in fields:
            message = "raw_data_bytes and raw_data_hex stand together."
            self.faults.add("value_invalid", fields.at, message, "one of them", "both")
        value = Value(
            type=fields.number("type", -(2**31), 2**31 - 1) or 0,
            declaration=declaration,
            data=data,
            external=External(fields.pairs("external_data")) if "external_data" in fields else None,
            name=fields.string("name"),
            doc=fields.string("doc_string"),
            dims=fields.numbers("dims", 0, MAX_UINT64) or (),
        )
        return value, len(data) if length is None else length

    def _static(self, fields: Object) -> Declaration | None:
        if "static" not in fields:
            return None
        path = fields.path("static")
        inner = Object(self.faults, fields.raw("static"), path, (), (*KINDS, "shape", *EXTRAS))
        return Declaration(
            type=self.types.kind(inner, path, 0),
            name=inner.string("name"),
            doc=inner.string("doc_string"),
            dims_param=inner.strings("dims_param") or (),
            metadata=inner.pairs("metadata_props"),
            # Not read: that one stands here at all is the fault.
            decoder=b"" if "decoder" in inner else None,
            encoder=b"" if "encoder" in inner else None,
        )

    def _expected(self, fields: Object) -> Expected:
        leaves = fields.array("leaves")
        for index, leaf in enumerate(leaves or ()):
            Object(self.faults, leaf, (*fields.path("leaves"), index), ("path",), LEAF_MEMBERS)
        return Expected(
            fields.number("size_bits", 0, MAX_UINT64),
            fields.number("size_bytes", 0, MAX_UINT64),
            None if leaves is None else tuple(leaves),
            fields.text("code"),
        )


def _are_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
