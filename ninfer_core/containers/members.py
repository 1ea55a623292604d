"""Members of one JSON object of a directory, each checked and reported with its place."""

from collections.abc import Collection
from dataclasses import dataclass

from ninfer_core.findings import Findings
from ninfer_core.layouts.base import U64_MAX
from ninfer_core.strict_json import Huge, Json, Members, show, type_name

_LONGEST_STEP = 100


def is_text(name: str) -> bool:
    """Whether a string is Unicode text: no half of a surrogate pair."""
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON object: `label` is the object a finding belongs to, `path` its place in the directory."""

    members: Members
    label: str | None
    path: str
    findings: Findings
    ordinal: int | None = None  # of the object that the record is the entry of

    @property
    def sound(self) -> bool:
        """Whether no member was given twice; a doubled member has no one value."""
        return not self.members.duplicates

    def closed(self, required: Collection[str], optional: Collection[str] = ()) -> bool:
        """Whether exactly the known members are there; each missing and each unexpected one is a finding."""
        missing = [name for name in required if name not in self.members]
        unexpected = [name for name in self.members if name not in required and name not in optional]
        for name in missing:
            self.missing(name)
        for name in unexpected:
            known = ", ".join((*required, *optional))
            shown = show(name)
            self._add(
                "structure.member_unexpected",
                name,
                f"{self.path or 'the root'} has a member {shown}",
                known,
                shown,
            )
        return not missing and not unexpected

    def text(self, name: str, nul: bool = False) -> str | None:
        """A nonempty string, without U+0000 unless `nul`, or None with a finding; an absent member is silent.

        Half a surrogate pair was reported when the JSON was read, and is no text.
        """
        if name not in self.members:
            return None
        value = self.members[name]
        if not isinstance(value, str):
            self._wrong_type(name, "string")
            return None
        if not value or ("\0" in value and not nul):
            what = "is empty" if not value else "holds U+0000"
            self._add(
                "structure.member_value", name, f"{self._at(name)} {what}", "nonempty text", show(value)
            )
            return None
        return value if is_text(value) else None

    def integer(self, name: str, at_least: int) -> int | None:
        """An integer from `at_least` to 2^64 - 1, or None with a finding."""
        if name not in self.members:
            return None
        value = self.members[name]
        if type(value) is not int and not isinstance(value, Huge):
            self._wrong_type(name, "integer")
            return None
        if isinstance(value, Huge) or not at_least <= value <= U64_MAX:
            expected = f"an integer from {at_least} to 2^64-1"
            self._add(
                "structure.member_value", name, f"{self._at(name)} is out of range", expected, show(value)
            )
            return None
        return value

    def record(self, name: str) -> "Record | None":
        """A JSON object, or None with a finding."""
        if name not in self.members:
            return None
        value = self.members[name]
        if not isinstance(value, Members):
            self._wrong_type(name, "object")
            return None
        return Record(value, self.label, self._at(name), self.findings)

    def array(self, name: str, nonempty: bool = False) -> list[Json] | None:
        """An array, or None with a finding."""
        if name not in self.members:
            return None
        value = self.members[name]
        if not isinstance(value, list):
            self._wrong_type(name, "array")
            return None
        if nonempty and not value:
            self._add("structure.member_value", name, f"{self._at(name)} is empty", "a nonempty array", "[]")
            return None
        return value

    def value_error(self, name: str, expected: str, message: str | None = None) -> None:
        """Report a value that a rule beyond its type forbids."""
        message = message or f"{self._at(name)} is not {expected}"
        self._add("structure.member_value", name, message, expected, show(self.members.get(name)))

    def unknown_reference(self, name: str, what: str, found: str) -> None:
        """Report a reference to something that is not in the directory."""
        self._add(
            "structure.reference_unknown",
            name,
            f"{self._at(name)} names no {what}",
            f"the name of a {what}",
            show(found),
        )

    def _wrong_type(self, name: str, expected: str) -> None:
        value = self.members[name]
        message = f"{self._at(name)} is {type_name(value)}, not {expected}"
        self._add("structure.member_type", name, message, expected, f"{type_name(value)} {show(value)}")

    def _at(self, name: str) -> str:
        # A place is shown, never looked up: a name of a megabyte may not grow every path below it.
        name = name if len(name) <= _LONGEST_STEP else f"{name[:_LONGEST_STEP]}…"
        return f"{self.path}.{name}" if self.path else name

    def missing(self, name: str) -> None:
        """Report one required member that is not there."""
        self._add(
            "structure.member_missing",
            name,
            f"{self.path or 'the root'} has no member {name!r}",
            name,
            "nothing",
        )

    def _add(self, code: str, member: str, message: str, expected: str, found: str) -> None:
        where = {"member": show(member)[1:-1], "path": self.path}
        self.findings.add(
            code,
            message,
            object=self.label,
            where=where,
            expected=expected,
            found=found,
            ordinal=self.ordinal,
        )


def require_record(
    value: Json, label: str | None, path: str, findings: Findings, ordinal: int | None = None
) -> Record | None:
    """`value` as a record, or None with a finding."""
    if isinstance(value, Members):
        return Record(value, label, path, findings, ordinal)
    findings.add(
        "structure.member_type",
        f"{path} is {type_name(value)}, not object",
        object=label,
        where={"member": "", "path": path},
        expected="object",
        found=f"{type_name(value)} {show(value)}",
        ordinal=ordinal,
    )
    return None
