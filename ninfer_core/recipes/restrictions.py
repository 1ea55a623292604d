"""Restrictions: what a recipe demands of the objects in a scope, and on what ground."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from ninfer_core import strict_json
from ninfer_core.documents.fields import MAX_INTEGER, Faults, Fields, Path
from ninfer_core.findings import Severity
from ninfer_core.formats import FORMATS, DirectFormat, GroupedFormat, NumericFormat, RowFormat
from ninfer_core.sources.json_text import json_path, listed
from ninfer_core.strict_json import Json

Basis = Literal["contract", "derived", "recommended"]

BASES: Final[tuple[Basis, ...]] = ("contract", "derived", "recommended")
SOURCE_RULES: Final = {  # kept by operations and encoders whether a recipe states them or not
    "source_finite": "Source values are finite; encoders refuse what is not.",
    "group_scale_fits_f16": "The scale of every group fits binary16; the canonical encoder refuses a group whose does not.",
    "row_scale_fits_bf16": "The scale of every row fits BF16 and has a finite reciprocal; the encoder of FP8 rows refuses "
    "other rows.",
    "nvfp4_words_valid": "Scales and divisor of an NVFP4 source matrix are legal words.",
    "fp8_row_words_valid": "Codes and row scales of an FP8 source matrix are legal words.",
    "equal_weight_divisor_across_sources": "NVFP4 matrices that are joined have the same divisor, bit for bit.",
    "equal_source_words": "The tensors that `equal_scalar` names hold one and the same word.",
}
STORED_RULES: Final = {  # said of stored words, so they can be checked without any source
    "canonical_group_shape": "Every group looks as the canonical encoder leaves it: under a normal scale the largest code "
    "magnitude is qmax, and all codes are zero only under scale zero or the rescue word 0x0001.",
    "canonical_fp8_row_shape": "Every row looks as the encoder of FP8 rows leaves it: under a normal scale some code has "
    "magnitude word 0x7e, and a row with scale zero has no negative zero.",
    "stored_finite": "Every stored word of BF16 or FP32 is finite.",
    "fp32_low16_zero": "The low sixteen bits of every FP32 word are zero, as of widened BF16.",
    "finite_positive": "Every stored word of BF16 or FP32 is finite and above zero.",
    "int_range": "Every stored integer is from `min` to `max`.",
    "unique": "No stored word occurs twice.",
    "contains_special_ids": "The stored ids hold every special id of the resource that `from` names.",
}
RULES: Final = (*SOURCE_RULES, *STORED_RULES)
_ARGUMENTS: Final = {"int_range": ("min", "max"), "contains_special_ids": ("from",)}


@dataclass(frozen=True, slots=True)
class Scope:
    """Which objects: all that meet every member that is not None. `object` is a glob, `*` any run of characters."""

    encode: str | None
    format: str | None
    object: str | None

    def covers(self, name: str, encode: str, fmt: str) -> bool:
        """Whether an object is in the scope; `encode` is the encoder's or the producer's name."""
        return (
            (self.encode is None or self.encode == encode)
            and (self.format is None or self.format == fmt)
            and (self.object is None or matches(self.object, name))
        )


@dataclass(frozen=True, slots=True)
class Restriction:
    """One demand; `minimum`, `maximum` belong to `int_range`, `source`, a resource's name, to `contains_special_ids`."""

    scope: Scope
    rule: str
    basis: Basis
    path: str  # JSON path in the recipe
    minimum: int | None = None
    maximum: int | None = None
    source: str | None = None

    @property
    def severity(self) -> Severity:
        """What a breach is: only a recommendation may be broken."""
        return "advisory" if self.basis == "recommended" else "error"


def judges(rule: str, fmt: NumericFormat) -> bool:
    """Whether a rule about stored words says anything of the words of a format."""
    match rule:
        case "canonical_group_shape":
            return isinstance(fmt, GroupedFormat)
        case "canonical_fp8_row_shape":
            return isinstance(fmt, RowFormat)
        case "stored_finite" | "finite_positive":
            return fmt.name in ("BF16", "FP32")
        case "fp32_low16_zero":
            return fmt.name == "FP32"
        case "int_range" | "contains_special_ids":
            return fmt.name == "I32"
        case "unique":
            return isinstance(fmt, DirectFormat)
        case _:
            return False


def matches(glob: str, name: str) -> bool:
    """Whether `name` fits `glob`, in which `*` stands for any run of characters, `/` included; nothing else is special."""
    first, *rest = glob.split("*")
    if not rest:
        return glob == name
    *middle, last = rest
    if not name.startswith(first) or len(name) < len(first) + len(last) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for piece in middle:
        found = name.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def read_restrictions(
    fields: Fields, resources: Iterable[str], encoders: Iterable[str]
) -> tuple[Restriction, ...]:
    """The member `restrictions`; what does not fit is a finding. `encoders` are the names that a scope may use."""
    known = tuple(encoders)
    made = tuple(resources)
    return tuple(
        _read(fields.faults, fields.array("restrictions") or [], fields.path("restrictions"), made, known)
    )


def _read(
    faults: Faults, values: list[Json], path: Path, resources: tuple[str, ...], encoders: tuple[str, ...]
) -> Iterator[Restriction]:
    for index, value in enumerate(values):
        rule = value.get("rule") if isinstance(value, dict) else None
        arguments = _ARGUMENTS.get(rule, ()) if isinstance(rule, str) else ()
        fields = Fields(faults, value, (*path, index), ("scope", "rule", "basis", *arguments))
        chosen = fields.choice("rule", *RULES)
        basis = fields.choice("basis", *BASES)
        scope = _scope(fields, encoders)
        minimum = _integer(fields, "min") if "min" in arguments else None
        maximum = _integer(fields, "max") if "max" in arguments else None
        if minimum is not None and maximum is not None and minimum > maximum:
            fields.wrong_value("max", f"an integer of at least {minimum}")
        source = fields.text("from") if "from" in arguments else None
        if source is not None and source not in resources:
            shown = strict_json.show(source)
            faults.add(
                "resource_undefined",
                fields.path("from"),
                f"no resource makes {shown}.",
                listed(resources),
                shown,
            )
        if chosen is None or basis is None or scope is None:
            continue
        ground = next(name for name in BASES if name == basis)
        yield Restriction(scope, chosen, ground, json_path(fields.at), minimum, maximum, source)


def _scope(fields: Fields, encoders: tuple[str, ...]) -> Scope | None:
    if "scope" not in fields:
        return None
    members = ("encode", "format", "object")
    reader = Fields(fields.faults, fields.raw("scope"), fields.path("scope"), (), members)
    if not any(member in reader for member in members):
        fields.wrong_value("scope", f"at least one of {', '.join(members)}")
        return None
    encode = reader.choice("encode", *encoders)
    fmt = reader.choice("format", *FORMATS.names)
    name = reader.text("object")
    if sum(value is not None for value in (encode, fmt, name)) != sum(member in reader for member in members):
        return None
    return Scope(encode, fmt, name)


def _integer(fields: Fields, name: str) -> int | None:
    return fields.integer(name, -MAX_INTEGER)
