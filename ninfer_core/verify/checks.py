"""The checks and what may be asked of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ninfer_core.errors import Usage

CheckName = Literal[
    "structure",
    "layout",
    "values",
    "statistics",
    "restrictions",
    "inventory",
    "relations",
    "source",
    "parity",
]
Outcome = Literal["passed", "failed", "not_checked", "not_asked"]
Verdict = Literal["passed", "failed", "incomplete", "error", "cancelled"]

CHECKS: tuple[CheckName, ...] = get_args(CheckName)
WORD_CHECKS: frozenset[CheckName] = frozenset(("layout", "values", "statistics"))
# What can be answered from the directory and the sources alone: no object is read, so none is digested.
LISTING_CHECKS: frozenset[CheckName] = frozenset(("structure", "inventory", "source"))
MEANINGS: dict[CheckName, str] = {
    "structure": "framing, directory, registry names, sizes and places",
    "layout": "padding lanes, wholly padded groups and gaps between planes are zero",
    "values": "every stored word is legal in its format",
    "statistics": "scale ranges, zero groups, code use; tensors that are all zero",
    "restrictions": "what the recipe demands of stored words, from canonical group shapes to pinned resources",
    "inventory": "every object of the target and no other, each as the target says",
    "relations": "what objects of one artifact, or tensors of one file, say of each other",
    "source": "the checkpoints are those that the recipe means: files, names, shapes, dtypes, config",
    "parity": "every word equals what the recipe makes of the source",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """The checks a verification was asked for; `structure` is always among them, since all others stand on it."""

    checks: frozenset[CheckName]

    def __contains__(self, name: object) -> bool:
        return name in self.checks


def asked(names: Sequence[str]) -> Asked:
    """The checks of these names. Raises: Usage for an unknown name or none at all."""
    chosen = [check for check in CHECKS if check in names]
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        raise Usage(f"unknown check {', '.join(map(repr, unknown))}; there are {', '.join(CHECKS)}")
    if not chosen:
        raise Usage("no check was asked for; nothing asked is nothing proved")
    return Asked(frozenset(("structure", *chosen)))
