"""Bits and group size that a configuration declares, against the shapes that are stored; exact, whatever the width.

About codes packed in words of 32 bits beside `scales`: W words hold W * 32 / bits columns, G scales G * group_size.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ninfer_core import strict_json
from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.findings import Findings
from ninfer_core.io import FileSet, read
from ninfer_core.layouts.base import Shape
from ninfer_core.sources.safetensors import SourceTensor
from ninfer_core.strict_json import Json, Malformed, Members
from ninfer_core.verify.dialects import FLOATS, WEIGHT, Tensors

CONFIG: Final = "config.json"
MEMBERS: Final = ("quantization", "quantization_config")
WORD_BITS: Final = 32
_MAX_BYTES: Final = 16 << 20
_MAX_DEPTH: Final = 64
_AFFINE: Final = tuple((bits, group) for group in (32, 64, 128) for bits in (2, 3, 4, 5, 6, 8))
_MICROSCALED: Final = ((4, 16), (4, 32), (8, 32))  # with scales of eight bits


@dataclass(frozen=True, slots=True)
class Reading:
    """A width of codes and the number of weights that share a scale."""

    bits: int
    group_size: int

    def columns(self, words: int) -> Fraction:
        """What so many words hold."""
        return Fraction(words * WORD_BITS, self.bits)

    def fits(self, words: int, scales: int) -> bool:
        """Whether words and scales stand for the same number of columns."""
        return self.columns(words) == scales * self.group_size

    @property
    def json(self) -> dict[str, int]:
        """As reports show it."""
        return {"bits": self.bits, "group_size": self.group_size}


@dataclass(frozen=True, slots=True)
class Declarations:
    """What the configuration beside a checkpoint says; `why_none` says why it is silent."""

    documents: Mapping[str, Members]  # by the member that holds it
    why_none: str

    def of(self, module: str) -> Iterator[tuple[str, Reading]]:
        """(where it stands, what it says) about one module: its own entry, else the common one."""
        for member, document in self.documents.items():
            own = document.get(module)
            reading = _reading({**document, **own} if isinstance(own, Members) else document)
            if reading is not None:
                yield f"{member}.{module}" if isinstance(own, Members) else member, reading

    @property
    def block(self) -> Shape | None:
        """The block size of FP8 scales, [rows, columns], where one is declared."""
        for document in self.documents.values():
            sides = document.get("weight_block_size")
            if isinstance(sides, list) and len(sides) == 2 and all(map(_positive, sides)):
                return tuple(sides)
        return None


def read_declarations(files: FileSet) -> Declarations:
    """What `config.json` beside the tensors declares; one that cannot be read declares nothing."""
    if CONFIG not in files:
        return Declarations({}, f"there is no {CONFIG}")
    try:
        source = files.open(CONFIG)
        if source.size > _MAX_BYTES:
            return Declarations({}, f"{CONFIG} is larger than {_MAX_BYTES:,} bytes")
        document, _ = strict_json.parse(read(source, 0, source.size), _MAX_DEPTH)
    except (CannotRead, CutShort) as error:
        return Declarations({}, str(error))
    except Malformed as error:
        return Declarations({}, f"{CONFIG} is no JSON: {error.problem.found}")
    members = document if isinstance(document, Members) else Members()
    found = {name: members[name] for name in MEMBERS if isinstance(members.get(name), Members)}
    return Declarations(found, f"{CONFIG} declares no bits and group size")


def check_declared(
    tensors: Tensors, ordinals: Mapping[str, int], declarations: Declarations, findings: Findings
) -> None:
    """A finding for every packed weight that its declaration contradicts, or that none declares and several fit."""
    for name, tensor in tensors.items():
        module = name.removesuffix(WEIGHT)
        scales = tensors.get(f"{module}.scales")
        if not name.endswith(WEIGHT) or tensor.dtype != "U32" or scales is None:
            continue
        if tensor.shape and len(tensor.shape) == len(scales.shape):
            _judge(
                name, tensor, scales, list(declarations.of(module)), declarations, ordinals[name], findings
            )


def _judge(
    name: str,
    tensor: SourceTensor,
    scales: SourceTensor,
    declared: list[tuple[str, Reading]],
    declarations: Declarations,
    ordinal: int,
    findings: Findings,
) -> None:
    words, count = tensor.shape[-1], scales.shape[-1]
    known = _AFFINE if scales.dtype in FLOATS else _MICROSCALED
    fits = [reading for reading in (Reading(*pair) for pair in known) if reading.fits(words, count)]
    stored = {"tensor": name, "stored_columns": words, "scale_columns": count}
    fitting = [reading.json for reading in fits]
    shown = (
        " or ".join(f"{reading.bits} bits in groups of {reading.group_size}" for reading in fits)
        or "nothing known"
    )
    for place, reading in declared:
        if reading.fits(words, count):
            continue
        by_words, by_scales = reading.columns(words), count * reading.group_size
        findings.add(
            "relations.declared_contradicts_storage",
            f"{place} declares {reading.bits} bits in groups of {reading.group_size} for {name}: {words} words would "
            f"hold {by_words} columns, {count} scales {by_scales}",
            object=name,
            where={
                **stored,
                "member": place,
                **reading.json,
                "columns_by_words": str(by_words),
                "columns_by_scales": by_scales,
                "fits": fitting,
            },
            expected=shown,
            found=f"{reading.bits} bits in groups of {reading.group_size}",
            ordinal=ordinal,
        )
    if not declared and len(fits) != 1:
        findings.add(
            "relations.quantization_undeclared",
            f"{words} words and {count} scales a row of {name} may be {shown}, and {declarations.why_none}",
            object=name,
            where={**stored, "fits": fitting},
            expected="a declared width and group size",
            found=shown,
            ordinal=ordinal,
        )


def _reading(document: Mapping[str, Json]) -> Reading | None:
    bits, group = _positive(document.get("bits")), _positive(document.get("group_size"))
    return None if bits is None or group is None else Reading(bits, group)


def _positive(value: Json) -> int | None:
    return value if type(value) is int and 0 < value < 1 << 32 else None
