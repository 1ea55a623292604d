"""What two directories say beyond their objects: identity, what a reader binds, and claims.

Equal objects under other bindings are another model, so identity, bindings, components, uses and metadata decide the
verdict. The revision and claims of provenance are told and decide nothing. What a revision cannot state (an identity
in 3, a `weights_id` in 1, sections in 1 and 2) is no difference to one that can.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from ninfer_core.containers.directory import Artifact
from ninfer_core.documents.contrast import Difference, differences, whole_difference
from ninfer_core.verify.bound_roles import bound_parts

MOST: Final = 1_000  # facts of one comparison that are listed
_OTHERS: Final = ("components", "uses", "metadata")  # deciding sections beside bindings


@dataclass(frozen=True, slots=True)
class Fact:
    """One member of the directories that differs: JSON text of both values, bounded, None where a side has none.

    `decides` says whether it alone makes the two artifacts different.
    """

    name: str
    a: str | None
    b: str | None
    decides: bool

    @property
    def section(self) -> str:
        """The member of the directory that it is in."""
        return self.name.partition(".")[0].partition("[")[0]

    def as_json(self) -> dict[str, Any]:
        """Its entry in the document."""
        return {"name": self.name, "a": self.a, "b": self.b, "decides": self.decides}


@dataclass(frozen=True, slots=True)
class Facts:
    """The differences, those that decide first; `unlisted` counts those beyond the first `MOST`."""

    listed: tuple[Fact, ...] = ()
    unlisted: int = 0

    @property
    def deciding(self) -> tuple[str, ...]:
        """The sections that decide, in the order of the list; since they come first, none of them is unlisted alone."""
        return tuple(dict.fromkeys(fact.section for fact in self.listed if fact.decides))


def facts(a: Artifact | None, b: Artifact | None, *, sound: bool) -> Facts:
    """Where the directories differ; nothing where one of them could not be read.

    `sound` says that neither has an error of structure: then bindings that are spelled otherwise and hold the same
    are equal.
    """
    if a is None or b is None:
        return Facts()
    found = _all(a, b, sound)
    listed = tuple(islice(found, MOST))
    return Facts(listed, sum(1 for _ in found))


def _all(a: Artifact, b: Artifact, sound: bool) -> Iterator[Fact]:
    for difference in _identity(a, b):
        yield _fact(difference, decides=True)
    both = a.revision == b.revision == 3
    if both:
        for difference in _bindings(a, b, sound):
            yield _fact(difference, decides=True)
        for difference in differences("", *(_chosen(side.sections, _OTHERS) for side in (a, b))):
            yield _fact(difference, decides=True)
    if a.revision != b.revision:
        yield Fact("revision", str(a.revision), str(b.revision), decides=False)
    if both:
        for difference in differences("", *(_chosen(side.sections, ("provenance",)) for side in (a, b))):
            yield _fact(difference, decides=False)


def _identity(a: Artifact, b: Artifact) -> Iterator[Difference]:
    if max(a.revision, b.revision) > 2:
        return
    if a.model_id != b.model_id:
        yield whole_difference("identity.model_id", a.model_id, b.model_id)
    if a.revision == b.revision == 2 and a.weights_id != b.weights_id:
        yield whole_difference("identity.weights_id", a.weights_id, b.weights_id)


def _bindings(a: Artifact, b: Artifact, sound: bool) -> Iterator[Difference]:
    """Each binding that differs, as a whole."""
    one, other = a.sections.get("bindings"), b.sections.get("bindings")
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        yield from differences("bindings", one, other)
        return
    stored = [{item.name: item for item in side.readable} for side in (a, b)]
    for name in (*one, *(name for name in other if name not in one)):
        left, right = one.get(name), other.get(name)
        same = not any(True for _ in differences("", left, right))
        if sound and not same and left is not None and right is not None:
            same = bound_parts(left, stored[0]) == bound_parts(right, stored[1])
        if not same:
            yield whole_difference(f"bindings.{name}", left, right)


def _chosen(sections: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: sections[name] for name in names if name in sections}


def _fact(difference: Difference, *, decides: bool) -> Fact:
    return Fact(difference.path, difference.a, difference.b, decides)
