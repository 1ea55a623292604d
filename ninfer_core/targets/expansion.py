"""Templates of a target document expanded: one budget for all names, so that memory follows the document."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ninfer_core import strict_json
from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.documents.sets import Sets
from ninfer_core.documents.templates import (
    MAX_EXPANSION,
    NAME_COST,
    Assignment,
    Each,
    assignments,
    combinations,
    template_fault,
)
from ninfer_core.sources.json_text import listed
from ninfer_core.strict_json import Json

STEPS_OF_A_NAME: Final = 16  # what is merely compared costs this much less than a name


@dataclass(slots=True)
class Expansion:
    """The sets of one document, and how many characters of names it may still expand to."""

    faults: Faults
    sets: Sets
    left: int = field(default=MAX_EXPANSION)
    _frozen: dict[str, frozenset[int]] = field(default_factory=dict)

    def spend(self, path: Path, count: int, characters: int) -> bool:
        """Whether `count` more names, of that many characters together in one round, stay within the limit."""
        self.left -= count * (characters + NAME_COST)
        if self.left >= 0:
            return True
        message = f"at least {count:,} names bring the document above the limit."
        expected = f"names of at most {MAX_EXPANSION:,} characters, {NAME_COST} more counted for each"
        self.faults.add("too_many_objects", path, message, expected, f"at least {count:,} names")
        self.left = 0
        return False

    def steps(self, path: Path, count: int) -> bool:
        """Whether `count` comparisons that may make nothing stay within the limit."""
        return self.spend(path, count // STEPS_OF_A_NAME, 0)

    def members(self, fields: Fields, member: str) -> frozenset[int] | None:
        """The set that a member names, for look-ups; one value however many entries name it. None after a finding."""
        values, name = self.values(fields, member, filled=False), fields.raw(member)
        if values is None:
            return None
        if name not in self._frozen:
            self._frozen[name] = frozenset(values)
        return self._frozen[name]

    def values(self, fields: Fields, member: str, filled: bool = True) -> tuple[int, ...] | None:
        """The set that a member names; None after a finding. An empty one is a finding when `filled` is asked."""
        name = fields.text(member)
        return None if name is None else self._set(name, fields.path(member), filled)

    def _set(self, name: Json, path: Path, filled: bool) -> tuple[int, ...] | None:
        shown = strict_json.show(name)
        if not isinstance(name, str) or name not in self.sets:
            self.faults.add("set_unknown", path, f"no set {shown}.", listed(self.sets), shown)
            return None
        values = self.sets[name]
        if filled and values == ():
            message = f"the set {shown} is empty, so nothing comes of this."
            self.faults.add("set_empty", path, message, "a filled set", "an empty set")
            return None
        return values

    def each(self, fields: Fields) -> tuple[Each | None, tuple[str, ...]]:
        """The member `each`, variables and their values, and the variables alone; no values after a finding."""
        members: Mapping[str, Json] = fields.object("each") or {}
        found = {
            name: self._set(value, (*fields.path("each"), name), True) for name, value in members.items()
        }
        each = tuple((name, values) for name, values in found.items() if values is not None)
        stated = "each" not in fields or isinstance(fields.raw("each"), dict)
        return (each if stated and len(each) == len(members) else None), tuple(members)

    def rounds(self, path: Path, each: Each | None, templates: tuple[str, ...]) -> Iterator[Assignment]:
        """Every assignment of `each`, when all the names that come of it stay within the limit."""
        if each is None:
            return
        if self.spend(path, combinations(each, MAX_EXPANSION), sum(map(len, templates))):
            yield from assignments(each)

    def template(self, fields: Fields, member: str, variables: tuple[str, ...]) -> str | None:
        """A name with `{v}` of known variables in it; None after a finding."""
        text = fields.text(member)
        return None if text is None else self.check_template(text, fields.path(member), variables)

    def check_template(self, text: str, path: Path, variables: tuple[str, ...]) -> str | None:
        """`text` when it may stand for names; a line of an inventory holds no control characters."""
        if any(ord(character) < 32 or ord(character) == 127 for character in text):
            shown = strict_json.show(text)
            message = f"control characters in the name {shown}."
            self.faults.add("value_invalid", path, message, "a name without control characters", shown)
            return None
        if fault := template_fault(text, variables):
            expected = "braces around variables in scope only"
            self.faults.add("template_invalid", path, f"{fault}.", expected, strict_json.show(text))
            return None
        return text


def row_range(fields: Fields, member: str) -> tuple[int, int] | None:
    """A member of the form [begin, end] with begin < end; None after a finding, or when absent."""
    values = fields.integers(member)
    if values is None:
        return None
    if len(values) != 2 or values[0] >= values[1]:
        shown = strict_json.show(fields.raw(member))
        message = f"{shown} is no range of rows."
        fields.faults.add(
            "view_rows", fields.path(member), message, "[begin, end] with 0 <= begin < end", shown
        )
        return None
    return values[0], values[1]
