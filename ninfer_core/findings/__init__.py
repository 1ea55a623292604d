"""Findings: answers. Every way a file, a recipe or a value can be wrong has one stable code here.

An exception means that we could not answer; a finding is an answer, and all of them are collected.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ninfer_core.findings.convert import CONVERT
from ninfer_core.findings.definition import Definition, Severity
from ninfer_core.findings.inventory import INVENTORY
from ninfer_core.findings.kernels import KERNELS
from ninfer_core.findings.parity import PARITY
from ninfer_core.findings.profiles import PROFILES
from ninfer_core.findings.recipe import RECIPE
from ninfer_core.findings.relations import RELATIONS
from ninfer_core.findings.restrictions import RESTRICTIONS
from ninfer_core.findings.safetensors import SAFETENSORS
from ninfer_core.findings.schemes import SCHEMES
from ninfer_core.findings.source import SOURCE
from ninfer_core.findings.structs import STRUCTS
from ninfer_core.findings.structure import FILE, STRUCTURE
from ninfer_core.findings.target import TARGET
from ninfer_core.findings.values import VALUES
from ninfer_core.registry import Closed

FINDINGS: Closed[Definition] = Closed(
    "finding code",
    *FILE,
    *STRUCTURE,
    *SAFETENSORS,
    *VALUES,
    *PARITY,
    *SOURCE,
    *RECIPE,
    *CONVERT,
    *TARGET,
    *INVENTORY,
    *RESTRICTIONS,
    *RELATIONS,
    *KERNELS,
    *SCHEMES,
    *STRUCTS,
    *PROFILES,
)


About = Literal["artifact", "recipe", "source", "target"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found: where, what was expected, what was there, and how often.

    `object` is the object's name, `objects[i]` where the entry is too broken to trust a name, None for the file.
    `about` says whose fault it is: a recipe or a source can break the rules of any file, and then the artifact under
    verification is not to blame.
    """

    code: str
    object: str | None
    where: Mapping[str, Any]
    expected: str
    found: str
    message: str
    count: int = 1
    about: About = "artifact"
    decided: Severity | None = (
        None  # where the code's own severity does not hold, see `Definition.severity_by`
    )

    @property
    def check(self) -> str:
        """The check that this finding belongs to; what is wrong with a recipe or a source is no check of the artifact."""
        return self.definition.check if self.about == "artifact" else self.about

    @property
    def definition(self) -> Definition:
        """What the code means."""
        return FINDINGS[self.code]

    @property
    def severity(self) -> Severity:
        """`error` or `advisory`."""
        return self.decided or self.definition.severity


MAX_PER_CODE = 10_000
MAX_CHARACTERS = 32 << 20  # of all findings of one collection together
_LONGEST = 1_000  # of one text; a name of a megabyte is not repeated in every finding about it
_MOST = 64  # values of one list in `where`


@dataclass(slots=True)
class Findings:
    """A growing list of findings; `add` refuses a code that is not registered.

    Memory is bounded whatever a file holds: long texts are clipped in their middle, and what comes after the first
    `MAX_PER_CODE` findings of a code and severity, or after `MAX_CHARACTERS` in all, is counted in `unlisted`. The first
    of a code and severity is always listed, so that no error hides behind advisories.
    """

    items: list[Finding] = field(default_factory=list)
    unlisted: Counter[str] = field(default_factory=Counter)
    failed: set[int] = field(default_factory=set)  # ordinals of objects with an error, listed or not
    _listed: Counter[tuple[str, Severity]] = field(default_factory=Counter)
    _characters: int = 0

    def add(
        self,
        code: str,
        message: str,
        *,
        object: str | None = None,  # noqa: A002  the word of the report
        where: Mapping[str, Any] | None = None,
        expected: object = "",
        found: object = "",
        count: int = 1,
        ordinal: int | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Record one finding; `ordinal` is that of the object it fails, `severity` overrides that of the code.

        Raises: UnknownName for an unregistered code, ValueError to override where the code does not say what by.
        """
        definition = FINDINGS[code]
        name = definition.name
        decided = None if severity == definition.severity else severity
        if decided is not None and definition.severity_by is None:
            raise ValueError(f"nothing decides the severity of {name} but the code itself")
        if ordinal is not None and (decided or definition.severity) == "error":
            self.failed.add(ordinal)
        if self._is_full(name, decided or definition.severity):
            self.unlisted[name] += 1
            return
        place = {key: _bounded(value) for key, value in (where or {}).items()}
        label = None if object is None else clip(object)
        texts = (clip(str(expected)), clip(str(found)), clip(message))
        self._list(Finding(name, label, place, *texts, count, decided=decided))

    def _is_full(self, code: str, severity: Severity) -> bool:
        listed = self._listed[code, severity]
        return listed >= MAX_PER_CODE or (self._characters > MAX_CHARACTERS and listed > 0)

    def _list(self, finding: Finding) -> None:
        texts = (finding.message, finding.expected, finding.found, finding.object or "")
        self._characters += 200 + sum(map(len, texts)) + sum(map(_length, finding.where.values()))
        self._listed[finding.code, finding.severity] += 1
        self.items.append(finding)

    def extend(self, other: "Findings") -> None:
        """Take over the findings of another collection, in order, within the same limits."""
        for finding in other.items:
            if self._is_full(finding.code, finding.severity):
                self.unlisted[finding.code] += 1
            else:
                self._list(finding)
        self.unlisted.update(other.unlisted)
        self.failed |= other.failed

    def blame(self, about: About) -> None:
        """Mark every finding as being about a recipe or a source; codes of the recipe's own stay with the recipe."""
        self.items = [
            replace(item, about="recipe" if item.code.startswith("recipe.") else about) for item in self.items
        ]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that fail a verification."""
        return tuple(item for item in self.items if item.severity == "error")

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


def clip(text: str) -> str:
    """A text as findings hold it: whole up to a thousand characters, without its middle beyond; always Unicode."""
    if not text.isascii():
        text = text.encode(
            "utf-8", "backslashreplace"
        ).decode()  # half a surrogate pair is no text for a report
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 2]} … {len(text) - _LONGEST:,} characters … {text[-_LONGEST // 2 :]}"


def _bounded(value: Any) -> Any:
    if isinstance(value, str):
        return clip(value)
    if isinstance(value, list | tuple):
        return [_bounded(item) for item in value[:_MOST]]
    return value


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(_length(item) for item in value) if isinstance(value, list) else 8


__all__ = ["FINDINGS", "About", "Definition", "Finding", "Findings", "Severity", "clip"]
