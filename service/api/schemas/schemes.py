"""The catalogue of foreign schemes, and the answers about struct types."""

from typing import Any, Literal

from pydantic import Field

from service.api.schemas.base import Answer

Verdict = Literal["passed", "failed", "incomplete"]


class BitsRead(Answer):
    """Bits per weight."""

    claimed: str | None = Field(description="By the table of the seed, as printed there.")
    declared: dict[str, list[float]] = Field(description="By the catalogue's own structures, form by form.")
    real: dict[str, list[float]] = Field(description="Of what files hold, form by form.")


class SchemeRead(Answer):
    """One scheme of the catalogue. None of its names is a format of a `.ninfer` file."""

    name: str
    title: str
    row: int | None = Field(description="In the table of the seed; null for what only its text defines.")
    profiles: str
    summary: str
    aliases: list[str]
    bits_per_weight: BitsRead
    contradictions: list[str] = Field(description="Where the seed contradicts itself, or what files hold.")
    apart: str | None = Field(description="What of the closed registry it could be taken for, and is not.")
    forms: list[str]
    encode: dict[str, str | None] = Field(
        description="What its encoder promises, form by form; null without one."
    )
    oracles: list[str]


class PartRead(Answer):
    """An array that a form is stored in."""

    name: str
    dtypes: list[str]
    axes: str
    meaning: str
    optional: bool


class ParameterRead(Answer):
    """A number or a word that the arrays do not say."""

    name: str
    kind: str
    meaning: str
    required: bool
    default: Any
    choices: list[Any]


class SizesRead(Answer):
    """What a tensor of one shape takes."""

    shape: list[int]
    params: dict[str, Any]
    parts: dict[str, list[int]]
    bits: dict[str, int]
    bits_per_weight: float | None


class BoxRead(Answer):
    """A stretch of the payload: `bits` of one element, repeated over `counts`, at a place in the element around it."""

    name: str
    what: str
    offset_bits: int
    bits: int
    counts: list[int]
    constant: bool
    inside: list["BoxRead"]


class FormRead(Answer):
    """One way in which a scheme is stored: `literal` is the catalogue's own, `file` what users' files hold."""

    name: str
    kind: Literal["literal", "file"]
    summary: str
    axes: list[str]
    parts: list[PartRead]
    parameters: list[ParameterRead]
    encode: str | None
    compiled: bool
    arithmetic: str
    oracle: str
    notes: str
    sizes: SizesRead
    layout: BoxRead = Field(description="Its struct type.")
    word: BoxRead | None = Field(description="What one stored word of the codes holds.")
    decoder: str | None = Field(description="In ONNX text form; null where standard operators give none.")
    encoder: str | None = Field(
        description="In ONNX text form; null where no rule or no operators fix the bytes."
    )


class SchemeWhole(Answer):
    """The document `ninfer-gate/schemes/1` of one scheme, or of one form of it."""

    schema_: str = Field(alias="schema")
    scheme: SchemeRead
    forms: list[FormRead]
    refused: dict[str, str] = Field(
        description="Forms that do not take the shape that was asked for, and why; they are shown for their examples."
    )


class LeafRead(Answer):
    """A leaf of a struct type, in canonical order."""

    path: str
    type: str
    shape: list[int]
    offset_bits: int = Field(description="Of its first element in the payload.")
    strides_bits: list[int] = Field(description="From one element to the next, by dimension.")
    constant: bool


class StructRead(Answer):
    """The document `ninfer-gate/struct-check/1`."""

    schema_: str = Field(alias="schema")
    verdict: Verdict
    name: str
    size_bits: int | None
    size_bytes: int | None
    payload_bytes: int | None = Field(description="Of the payload, where one was given.")
    leaves: list[LeafRead] | None = Field(description="The first of them; null where the type has faults.")
    leaf_count: int | None
    findings: list[dict[str, Any]]
    versions: dict[str, Any]
