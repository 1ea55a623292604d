"""Reading members of a document with closed objects: every fault becomes a finding with its JSON path."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ninfer_core import strict_json
from ninfer_core.findings import Findings
from ninfer_core.sources.json_text import json_path, listed
from ninfer_core.strict_json import Huge, Json, Members

Path = tuple[str | int, ...]

MAX_INTEGER: Final = 2**53 - 1  # the integers that the canonical form of a document keeps exact
_HEX_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Faults:
    """Where findings about one document go; `check` is the first part of their codes: `recipe` or `target`."""

    file: str
    findings: Findings
    check: str

    def add(
        self,
        slug: str,
        path: Path,
        message: str,
        expected: object = "",
        found: object = "",
        objects: Iterable[str] = (),
        **where: object,
    ) -> None:
        """One finding `<check>.<slug>` at `path`; `objects` are the expanded names that it concerns."""
        names = list(objects)
        place = json_path(path)
        self.findings.add(
            f"{self.check}.{slug}",
            f"{place}: {message}",
            object=names[0] if names else None,
            where={"file": self.file, "path": place, **({"objects": names} if names else {}), **where},
            expected=expected,
            found=found,
            count=max(1, len(names)),
        )


_READ_BY: Final = {
    "ninfer-recipe/1": "a recipe, which `ninfer-gate recipe check` reads",
    "ninfer-target/1": "a target, which `ninfer-gate targets check` reads",
}


def refuse_schema(faults: Faults, schema: Json, wanted: str) -> None:
    """The finding for a document of another schema than `wanted`; one of ours is told by its kind."""
    found = strict_json.show(schema)
    other = _READ_BY.get(schema) if isinstance(schema, str) else None
    hint = "" if other is None else f"; this is {other}"
    message = f"the schema is {found}, not {wanted}{hint}."
    faults.add("schema_unknown", ("schema",), message, wanted, found)


class Fields:
    """One JSON object of the document; a reader method returns None after a finding, or for an absent member."""

    def __init__(
        self,
        faults: Faults,
        value: Json,
        path: Path,
        required: tuple[str, ...],
        optional: tuple[str, ...] = (),
    ) -> None:
        """Members outside the two lists are findings."""
        self.faults = faults
        self.at = path
        self._members = value if isinstance(value, Members) else Members()
        if not isinstance(value, Members):
            self.wrong_type(None, value, "an object")
            return
        known = dict.fromkeys((*required, *optional))  # some name a member twice
        for name in required:
            if name not in value:
                faults.add("member_missing", path, f"no member {name}.", name, "nothing", member=name)
        for name in value:
            if name not in known:
                expected = listed(known, 20)
                message = f"unexpected member {strict_json.show(name)}."
                faults.add("member_unexpected", path, message, expected, strict_json.show(name), member=name)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def raw(self, name: str) -> Json:
        """The member as it is; None when absent."""
        return self._members.get(name)

    def path(self, name: str) -> Path:
        """The place of a member."""
        return (*self.at, name)

    def wrong_type(self, name: str | None, value: Json, expected: str) -> None:
        """The finding for a member, or for this object, of the wrong type."""
        path = self.at if name is None else self.path(name)
        kind = strict_json.type_name(value)
        self.faults.add(
            "value_type", path, f"expected {expected}, found {kind}.", expected, strict_json.show(value)
        )

    def wrong_value(self, name: str, expected: str) -> None:
        """The finding for a member with a value that is not allowed."""
        found = strict_json.show(self.raw(name))
        self.faults.add(
            "value_invalid", self.path(name), f"expected {expected}, found {found}.", expected, found
        )

    def text(self, name: str) -> str | None:
        """A nonempty string."""
        if name not in self:
            return None
        value = self.raw(name)
        if not isinstance(value, str):
            self.wrong_type(name, value, "a string")
        elif not value:
            self.wrong_value(name, "a nonempty string")
        else:
            return value
        return None

    def choice(self, name: str, *allowed: str) -> str | None:
        """One of a few strings."""
        value = self.text(name)
        if value is not None and value not in allowed:
            self.wrong_value(name, " or ".join(allowed))
            return None
        return value

    def sha256(self, name: str) -> str | None:
        """64 lowercase hex digits."""
        value = self.text(name)
        if value is not None and not _HEX_SHA256.fullmatch(value):
            self.wrong_value(name, "64 lowercase hex digits")
            return None
        return value

    def integer(self, name: str, minimum: int = 0) -> int | None:
        """An integer of at least `minimum`."""
        if name not in self:
            return None
        value = self.raw(name)
        if type(value) is int and minimum <= value <= MAX_INTEGER:
            return value
        if type(value) is int or isinstance(value, Huge):
            self.wrong_value(name, f"an integer from {minimum} to {MAX_INTEGER}")
        else:
            self.wrong_type(name, value, "an integer")
        return None

    def flag(self, name: str) -> bool:
        """A boolean; False when absent."""
        value = self.raw(name) if name in self else False
        if not isinstance(value, bool):
            self.wrong_type(name, value, "a boolean")
            return False
        return value

    def integers(self, name: str, minimum: int = 0) -> tuple[int, ...] | None:
        """An array of integers of at least `minimum`."""
        values = self.array(name)
        if values is None:
            return None
        if all(type(value) is int and minimum <= value <= MAX_INTEGER for value in values):
            return tuple(values)
        self.wrong_value(name, f"an array of integers from {minimum} to {MAX_INTEGER}")
        return None

    def texts(self, name: str) -> tuple[str, ...] | None:
        """An array of nonempty strings."""
        values = self.array(name)
        if values is None:
            return None
        if all(isinstance(value, str) and value for value in values):
            return tuple(values)
        self.wrong_value(name, "an array of nonempty strings")
        return None

    def array(self, name: str) -> list[Json] | None:
        """An array of anything."""
        if name not in self:
            return None
        value = self.raw(name)
        if isinstance(value, list):
            return value
        self.wrong_type(name, value, "an array")
        return None

    def object(self, name: str) -> Members | None:
        """An open object."""
        if name not in self:
            return None
        value = self.raw(name)
        if isinstance(value, Members):
            return value
        self.wrong_type(name, value, "an object")
        return None
