"""One rule: which objects it makes, from what value, in which format, by which encoder; judged before any work."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from ninfer_core import strict_json
from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.documents.templates import (
    MAX_EXPANSION,
    NAME_COST,
    Each,
    assignments,
    combinations,
    fill,
    template_fault,
)
from ninfer_core.encoders import PROFILES
from ninfer_core.errors import IllegalShape, SizeOverflow
from ninfer_core.formats import FORMATS, DirectFormat, NumericFormat
from ninfer_core.layouts import canonical_layout
from ninfer_core.layouts.base import Layout
from ninfer_core.recipes.nodes import Node, leaves
from ninfer_core.recipes.operations import ValueReader
from ninfer_core.sources.json_text import json_path, listed
from ninfer_core.strict_json import Json, Members

COPY_WORDS: Final = "copy_words"
COPY_BYTES: Final = "copy_bytes"
ENCODERS: Final = (COPY_WORDS, COPY_BYTES, *PROFILES.names)

DIRECT_OF_DTYPE: Final = {"BF16": "BF16", "F32": "FP32", "I32": "I32"}
ENCODER_DTYPES: Final = ("BF16", "F16", "F32", "F64")  # tensor-formats section 7: the sources it takes
_CONVERSIONS: Final = {
    ("BF16", "FP32"): "widen to FP32",
    ("F32", "BF16"): "cast to BF16",
    ("F16", "BF16"): "cast to BF16",
    ("I64", "I32"): "cast to I32",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule in which everything fits; `objects` are the names it makes, in order."""

    path: str
    each: Each
    objects: tuple[str, ...]
    fmt: NumericFormat
    layout: Layout
    axes: tuple[str, ...] | None
    value: Node
    encode: str


class RuleReader:
    """Reads the rules of one document, counting what they expand to."""

    def __init__(
        self, faults: Faults, roles: Collection[str], sets: dict[str, tuple[int, ...] | None]
    ) -> None:
        """`sets` holds None for a set that is named but faulty."""
        self._faults = faults
        self._roles = roles
        self._sets = sets
        self._budget = MAX_EXPANSION

    def read(self, value: Json, path: Path) -> Rule | None:
        """The rule at `path`, or None after findings."""
        fields = Fields(
            self._faults,
            value,
            path,
            ("object", "value", "encode"),
            ("each", "format", "axes"),
            ("producer",),
        )
        if not isinstance(value, Members):
            return None
        each, variables = self._each(fields)
        template = fields.text("object")
        if template is not None and (fault := template_fault(template, variables)):
            shown = strict_json.show(template)
            expected = "braces around variables of `each` only"
            self._faults.add("template_invalid", fields.path("object"), f"{fault}.", expected, shown)
            template = None
        reader = ValueReader(self._faults, self._roles, variables)
        node = reader.read(fields.raw("value"), fields.path("value")) if "value" in fields else None
        fmt, encode = self._format(fields), self._encoder(fields)
        axes = fields.texts("axes")
        if each is None or template is None:
            return None
        count = combinations(each, MAX_EXPANSION)
        names = (template, *(leaf.name for leaf in leaves(node))) if node is not None else (template,)
        self._budget -= count * sum(NAME_COST + len(name) for name in names)
        if self._budget < 0:
            message = f"at least {count:,} objects bring the names of the document above the limit."
            expected = f"names of at most {MAX_EXPANSION:,} characters, {NAME_COST} more counted for each"
            self._faults.add("too_many_objects", path, message, expected, f"at least {count:,} objects")
            self._budget = 0
            return None
        objects = tuple(fill(template, values) for values in assignments(each))
        if node is None or fmt is None:
            return None
        layout = canonical_layout(fmt)
        if axes is not None and len(axes) != len(node.shape):
            message = f"{len(axes)} axes for shape {list(node.shape)}."
            self._faults.add("axes_rank", fields.path("axes"), message, len(node.shape), len(axes))
        self._check_shape(path, node, fmt, layout, objects)
        if encode is None:
            return None
        self._check_encoder(path, node, fmt, encode, objects)
        return Rule(json_path(path), each, objects, fmt, layout, axes, node, encode)

    def _each(self, fields: Fields) -> tuple[Each | None, Collection[str]]:
        """Variables and their values; the values are None after a finding."""
        members: Mapping[str, Json] = fields.object("each") or {}
        each: list[tuple[str, tuple[int, ...]]] = []
        for variable, name in members.items():
            path = (*fields.path("each"), variable)
            if not isinstance(name, str) or name not in self._sets:
                shown = strict_json.show(name)
                known = listed(self._sets)
                self._faults.add("set_unknown", path, f"no set {shown}.", known, shown)
                continue
            values = self._sets[name]
            if values is not None and not values:
                message = f"the set {strict_json.show(name)} is empty, so the rule makes nothing."
                self._faults.add("set_empty", path, message, "a filled set", "an empty set")
            elif values is not None:
                each.append((variable, values))
        complete = len(each) == len(members) and (
            "each" not in fields or isinstance(fields.raw("each"), dict)
        )
        return (tuple(each) if complete else None), members

    def _format(self, fields: Fields) -> NumericFormat | None:
        if "format" not in fields:
            message = "the rule states no format, and no registered target states it instead."
            self._faults.add("format_missing", fields.at, message, ", ".join(FORMATS.names), "nothing")
            return None
        name = fields.text("format")
        if name is None:
            return None
        if name not in FORMATS:
            shown = strict_json.show(name)
            known = ", ".join(FORMATS.names)
            message = f"{shown} is not a registered numeric format (registered: {known})."
            self._faults.add("format_unknown", fields.path("format"), message, known, shown)
            return None
        return FORMATS[name]

    def _encoder(self, fields: Fields) -> str | None:
        encode = read_encoder(self._faults, fields)
        if encode == COPY_BYTES:
            message = f"{COPY_BYTES} makes resources, not tensors."
            self._faults.add(
                "encoder_format", fields.path("encode"), message, "an encoder of tensors", encode
            )
            return None
        return encode

    def _check_shape(
        self, path: Path, node: Node, fmt: NumericFormat, layout: Layout, objects: tuple[str, ...]
    ) -> None:
        try:
            layout.encoded_size(fmt, node.shape)
        except (IllegalShape, SizeOverflow) as error:
            message = f"{fmt.name} ({layout.name}) does not take the value: {error}"
            self._faults.add(
                "shape_unsupported", path, message, f"a shape for {layout.name}", list(node.shape), objects
            )

    def _check_encoder(
        self, path: Path, node: Node, fmt: NumericFormat, encode: str, objects: tuple[str, ...]
    ) -> None:
        if encode == COPY_WORDS:
            if not isinstance(fmt, DirectFormat):
                message = f"{COPY_WORDS} stores direct formats; {fmt.name} needs an encoder."
                self._faults.add("encoder_format", path, message, ", ".join(PROFILES.names), encode, objects)
            elif DIRECT_OF_DTYPE.get(node.dtype) != fmt.name:
                remedy = _CONVERSIONS.get((node.dtype, fmt.name))
                advice = (
                    f"name the conversion: {remedy}" if remedy else "there is no conversion between the two"
                )
                message = f"words of {node.dtype} would be stored as {fmt.name}; {advice}."
                self._faults.add("implicit_conversion", path, message, fmt.name, node.dtype, objects)
            return
        formats = PROFILES[encode].formats
        if fmt not in formats:
            expected = ", ".join(known.name for known in formats)
            self._faults.add(
                "encoder_format", path, f"{encode} does not make {fmt.name}.", expected, fmt.name, objects
            )
        if node.dtype not in ENCODER_DTYPES:
            expected = ", ".join(ENCODER_DTYPES)
            message = f"{encode} does not take {node.dtype}."
            self._faults.add("encoder_dtype", path, message, expected, node.dtype, objects)


def read_encoder(faults: Faults, fields: Fields) -> str | None:
    """The member `encode`: a known encoder, or None after a finding."""
    encode = fields.text("encode")
    if encode is not None and encode not in ENCODERS:
        known, shown = ", ".join(ENCODERS), strict_json.show(encode)
        faults.add(
            "encoder_unknown",
            fields.path("encode"),
            f"unknown encoder {shown} (known: {known}).",
            known,
            shown,
        )
        return None
    return encode
