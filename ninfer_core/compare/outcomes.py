"""What a task of a comparison can yield, and the same as strict JSON, as `ninfer_core.verify.outcomes` has it."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from ninfer_core.errors import CannotRead, CutShort, OutOfStep
from ninfer_core.kernels.values import ErrorSums
from ninfer_core.verify import outcomes as verified
from ninfer_core.verify.outcomes import Unread

KIND = "compared"


@dataclass(frozen=True, slots=True)
class Changes:
    """Logical words that differ, of two tensors of one format; a word of a direct format counts as a code."""

    codes: int = 0
    changed_codes: int = 0
    scales: int = 0
    changed_scales: int = 0
    divisor_changed: bool = False
    first: int | None = None  # of the changed codes, flat over all elements of the tensor

    @property
    def any(self) -> bool:
        """Whether some logical word differs."""
        return bool(self.changed_codes or self.changed_scales or self.divisor_changed)

    def plus(self, other: "Changes") -> "Changes":
        """The counts of both; `other` is of what comes later in the tensor."""
        return Changes(
            self.codes + other.codes,
            self.changed_codes + other.changed_codes,
            self.scales + other.scales,
            self.changed_scales + other.changed_scales,
            self.divisor_changed or other.divisor_changed,
            other.first if self.first is None else self.first,
        )


@dataclass(slots=True)
class Compared:
    """What one task found out about one pair of objects, or about an object that only one side has."""

    a: str | None = None  # sha256 of the payload
    b: str | None = None
    changes: Changes | None = None
    sums: ErrorSums | None = None
    no_values: str = ""  # why there are no sums, where both sides were read
    a_error: Unread | None = None
    b_error: Unread | None = None


Outcome = Compared | verified.Outcome


def to_json(outcome: Outcome) -> dict[str, Any]:
    """Strict JSON values that `from_json` makes the same outcome of."""
    if not isinstance(outcome, Compared):
        return verified.to_json(outcome)
    members = {
        "kind": KIND,
        "a": outcome.a,
        "b": outcome.b,
        "changes": outcome.changes and [*astuple(outcome.changes)],
        "sums": outcome.sums and outcome.sums.as_json(),
        "no_values": outcome.no_values,
        "a_error": outcome.a_error and verified.to_json(outcome.a_error),
        "b_error": outcome.b_error and verified.to_json(outcome.b_error),
    }
    return {name: value for name, value in members.items() if value}


def from_json(document: Mapping[str, Any]) -> Outcome:
    """The outcome that `to_json` wrote. Raises: OutOfStep for a kind that is not known."""
    if document["kind"] != KIND:
        return verified.from_json(document)
    changes, sums = document.get("changes"), document.get("sums")
    return Compared(
        document.get("a"),
        document.get("b"),
        changes and Changes(*changes),
        sums and ErrorSums.from_json(sums),
        document.get("no_values", ""),
        _unread(document.get("a_error")),
        _unread(document.get("b_error")),
    )


def _unread(document: Mapping[str, Any] | None) -> Unread | None:
    if document is None:
        return None
    outcome = verified.from_json(document)
    if isinstance(outcome, CutShort | CannotRead):
        return outcome
    raise OutOfStep(f"{document['kind']!r} is no reason why a file was not read")
