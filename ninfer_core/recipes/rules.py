"""One rule: which objects it makes, from what value, in which formats, by which encoder; judged before any work."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ninfer_core import strict_json
from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.documents.sets import Sets, read_each
from ninfer_core.documents.templates import (
    MAX_EXPANSION,
    NAME_COST,
    Each,
    assignments,
    combinations,
    fill,
)
from ninfer_core.errors import IllegalShape, SizeOverflow
from ninfer_core.formats import FORMATS, NumericFormat
from ninfer_core.layouts import canonical_layout
from ninfer_core.recipes.bundles import BundleTree, Tree
from ninfer_core.recipes.encoders import COPY_BYTES, Agreement, read_encoder
from ninfer_core.recipes.fitting import Fitting
from ninfer_core.recipes.inputs import Known
from ninfer_core.recipes.nodes import Tensor, leaves
from ninfer_core.recipes.operations import ValueReader
from ninfer_core.recipes.producers import Producer, read_producer
from ninfer_core.recipes.reading import sound_template
from ninfer_core.rejected_names import why_not
from ninfer_core.sources.json_text import json_path
from ninfer_core.strict_json import Json, Members
from ninfer_core.targets import Target


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule in which everything fits; `objects` are the names it makes, in order, `formats` theirs.

    `template` is the value as plain JSON with its variables. `encode` is None where a foreign `producer` encodes.
    """

    path: str
    each: Each
    objects: tuple[str, ...]
    formats: tuple[NumericFormat, ...]
    axes: tuple[str, ...] | None
    value: Tree
    template: Mapping[str, Any]
    encode: str | None
    producer: Producer | None

    @property
    def made(self) -> Iterator[tuple[str, NumericFormat]]:
        """Each object with its format."""
        return zip(self.objects, self.formats, strict=True)

    @property
    def maker(self) -> str:
        """The encoder's name, or the producer's."""
        return self.producer.name if self.producer is not None else self.encode or ""

    @property
    def leaves(self) -> tuple[Tensor, ...]:
        """The source tensors that an object of the rule reads; their names are templates."""
        return tree_leaves(self.value)


def tree_leaves(tree: Tree) -> tuple[Tensor, ...]:
    """The source tensors of a tree, of a quantized matrix too."""
    return tree.leaves if isinstance(tree, BundleTree) else leaves(tree)


@dataclass(slots=True)
class Budget:
    """What the names of all rules together may still cost."""

    left: int = MAX_EXPANSION


class RuleReader:
    """Reads rules of one document, counting what they expand to."""

    def __init__(
        self, faults: Faults, known: Known, sets: Sets, target: Target | None, budget: Budget
    ) -> None:
        """`target` states the formats that rules leave out; `known` learns of the vectors that are made."""
        self._faults = faults
        self._known = known
        self._sets = sets
        self._target = target
        self._budget = budget

    def read(self, value: Json, path: Path, template: Mapping[str, Any]) -> Rule | None:
        """The rule at `path`, or None after findings; `template` is its value as plain JSON."""
        required = ("object", "value") if _has_producer(value) else ("object", "value", "encode")
        optional = ("each", "format", "axes", "producer", "encode")
        fields = Fields(self._faults, value, path, required, optional)
        if not isinstance(value, Members):
            return None
        each, variables = read_each(fields, self._sets)
        name = sound_template(self._faults, fields.text("object"), fields.path("object"), variables)
        reader = ValueReader(self._faults, self._known, variables)
        tree = reader.read(fields.raw("value"), fields.path("value")) if "value" in fields else None
        producer = read_producer(fields)
        encode = self._encoder(fields, producer)
        axes = fields.texts("axes")
        objects = None if each is None or name is None else self._objects(path, each, name, tree)
        if objects is None or each is None:
            self._known.incomplete = True
            return None
        self._remember(objects, tree)
        formats = self._formats(fields, objects)
        if tree is None:
            return None
        if axes is not None and len(axes) != len(tree.shape):
            message = f"{len(axes)} axes for shape {list(tree.shape)}."
            self._faults.add("axes_rank", fields.path("axes"), message, len(tree.shape), len(axes))
        for fmt in dict.fromkeys(known for known in formats if known is not None):
            concerned = [made for made, stated in zip(objects, formats, strict=True) if stated == fmt]
            self._check_shape(path, tree, fmt, concerned)
            agreement = Agreement(self._faults, path, tree)
            if producer is not None:
                agreement.check_foreign(producer.name, fmt, concerned)
            elif encode is not None:
                agreement.check(encode, fmt, concerned)
        complete = tuple(fmt for fmt in formats if fmt is not None)
        if len(complete) != len(objects) or (encode is None and producer is None):
            return None
        return Rule(json_path(path), each, objects, complete, axes, tree, template, encode, producer)

    def _objects(self, path: Path, each: Each, name: str, tree: Tree | None) -> tuple[str, ...] | None:
        count = combinations(each, MAX_EXPANSION)
        names = (name, *(leaf.name for leaf in tree_leaves(tree))) if tree is not None else (name,)
        self._budget.left -= count * sum(NAME_COST + len(text) for text in names)
        if self._budget.left < 0:
            message = f"at least {count:,} objects bring the names of the document above the limit."
            expected = f"names of at most {MAX_EXPANSION:,} characters, {NAME_COST} more counted for each"
            self._faults.add("too_many_objects", path, message, expected, f"at least {count:,} objects")
            self._budget.left = 0
            return None
        return tuple(fill(name, values) for values in assignments(each))

    def _remember(self, objects: Iterable[str], tree: Tree | None) -> None:
        """Which vectors of I32 other rules may gather by."""
        if tree is None:
            self._known.vectors |= dict.fromkeys(objects)
        elif not isinstance(tree, BundleTree) and tree.dtype == "I32" and len(tree.shape) == 1:
            self._known.vectors |= dict.fromkeys(objects, tree.shape[0])

    def _formats(self, fields: Fields, objects: tuple[str, ...]) -> tuple[NumericFormat | None, ...]:
        """The format of each object, stated by the rule or else by the target."""
        if "format" not in fields:
            if self._target is None:
                message = "the rule states no format, and no registered target states it instead."
                self._faults.add("format_missing", fields.at, message, ", ".join(FORMATS.names), "nothing")
                return (None,) * len(objects)
            known = self._target.by_name
            formats = tuple(known[name].format if name in known else None for name in objects)
            if None in formats:
                Fitting(self._faults, self._target).compare_names(fields.at, objects, "tensor")
            return formats
        name = fields.text("format")
        if name is not None and name not in FORMATS:
            shown = strict_json.show(name)
            registered = ", ".join(FORMATS.names)
            reason = f": {why}" if (why := why_not(name)) else ""
            message = f"{shown} is not a registered numeric format{reason} (registered: {registered})."
            self._faults.add("format_unknown", fields.path("format"), message, registered, shown)
            name = None
        return (None if name is None else FORMATS[name],) * len(objects)

    def _encoder(self, fields: Fields, producer: Producer | None) -> str | None:
        if "producer" in fields:
            encode = fields.text("encode")
            if encode is not None and producer is not None and encode != producer.name:
                expected = f"{producer.name}, the name of the producer, or nothing"
                fields.wrong_value("encode", expected)
            return None
        encode = read_encoder(self._faults, fields)
        if encode == COPY_BYTES:
            message = f"{COPY_BYTES} makes resources, not tensors."
            expected = "an encoder of tensors"
            self._faults.add("encoder_format", fields.path("encode"), message, expected, encode)
            return None
        return encode

    def _check_shape(self, path: Path, tree: Tree, fmt: NumericFormat, objects: list[str]) -> None:
        layout = canonical_layout(fmt)
        try:
            layout.encoded_size(fmt, tree.shape)
        except (IllegalShape, SizeOverflow) as error:
            message = f"{fmt.name} ({layout.name}) does not take the value: {error}"
            expected = f"a shape for {layout.name}"
            self._faults.add("shape_unsupported", path, message, expected, list(tree.shape), objects)


def gathers(value: Json) -> bool:
    """Whether a value, in whatever state, holds the operation `gather_rows` anywhere."""
    if isinstance(value, Members):
        return value.get("op") == "gather_rows" or any(gathers(member) for member in value.values())
    return isinstance(value, list) and any(gathers(member) for member in value)


def _has_producer(value: Json) -> bool:
    return isinstance(value, Members) and "producer" in value
