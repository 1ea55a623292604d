"""Check `relations`: what objects of one artifact must say of each other, known from the recipe alone (catalogue D)."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ninfer_core import strict_json
from ninfer_core.containers.directory import Artifact, ArtifactObject, ResourceObject, TensorObject
from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.findings import Findings, Severity
from ninfer_core.formats import I32, GroupedFormat
from ninfer_core.io import CHUNK_BYTES, ByteSource, chunks, read
from ninfer_core.layouts.base import elements
from ninfer_core.recipes.ranking import CONFIG_LIMITS, special_ids
from ninfer_core.strict_json import Malformed, Members
from ninfer_core.verify.heads import Heads
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.task import Task

if TYPE_CHECKING:
    from ninfer_core.recipes.claims import HeadPair, Relations
    from ninfer_core.recipes.restrictions import Restriction

Judged: TypeAlias = Findings | CutShort | CannotRead

_SPECIAL: Final = "contains_special_ids"
_LARGEST_ID: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Relation:
    """One relation between objects: a task, or the reason why it can't be checked.

    `ordinals` are the objects that are there of those it concerns. The task yields an error where bytes could not be
    read; every finding fails the first of the objects.
    """

    rule: str  # of the check catalogue
    ordinals: tuple[int, ...]
    task: Task[[], Judged] | None
    reason: str | None = None


def relation_tasks(
    artifact: Artifact,
    facts: "Relations",
    claims: "Mapping[str, tuple[Restriction, ...]]",
    excluded: Collection[int],
    pool: Pool,
) -> tuple[Relation, ...]:
    """Every relation that the recipe states, in its order.

    `facts` and `claims` are what the recipe says of its objects; objects in `excluded` are not what the target says,
    and nothing is asked of them.
    """
    return tuple(_Planner(artifact, excluded, pool).relations(facts, claims))


class _Planner:
    """Finds the objects of a relation, each as what it must be, before there is a task."""

    def __init__(self, artifact: Artifact, excluded: Collection[int], pool: Pool) -> None:
        self.payload, self.excluded, self.pool = artifact.payload, excluded, pool
        self.by_name = {item.name: item for item in artifact.objects if item.name is not None}

    def relations(
        self, facts: "Relations", claims: "Mapping[str, tuple[Restriction, ...]]"
    ) -> Iterator[Relation]:
        for (ids, resource), severity in _special_sources(facts, claims).items():
            yield self._special(ids, resource, severity)
        for pair in facts.head_pairs:
            yield self._heads(pair)
        for listed in facts.id_lists:
            if listed.top_ids:
                yield self._top(listed.object, listed.top_ids)

    def _special(self, ids: str, resource: str, severity: Severity) -> Relation:
        found = self._found(ids, resource)
        match found:
            case (TensorObject(format=fmt) as vector, ResourceObject() as text) if fmt is I32:
                check = partial(_check_special, vector, text, severity, self.payload, self.pool)
                return self._relation("D1", (vector, text), vector.bytes + text.bytes, check)
        return self._unchecked("D1", ids, resource)

    def _top(self, ids: str, top_ids: tuple[int, ...]) -> Relation:
        match self._found(ids):
            case (TensorObject(format=fmt) as vector,) if fmt is I32:
                check = partial(_check_top, vector, top_ids, self.payload)
                return self._relation("D3", (vector,), 4 * len(top_ids), check)
        return self._unchecked("D3", ids)

    def _heads(self, pair: "HeadPair") -> Relation:
        match self._found(pair.draft, pair.head, pair.ids):
            case (
                TensorObject(format=GroupedFormat() as narrow) as draft,
                TensorObject(format=GroupedFormat() as wide) as head,
                TensorObject(format=fmt) as ids,
            ) if fmt is I32 and (draft.shape[0], draft.shape[1]) == (elements(ids.shape), head.shape[1]):
                heads = Heads(draft, narrow, head, wide, ids, self.payload, self.pool)
                return self._relation("D2", (draft, head, ids), 2 * draft.bytes + ids.bytes, heads.check)
        return self._unchecked("D2", pair.draft, pair.head, pair.ids)

    def _found(self, *names: str) -> tuple[ArtifactObject, ...]:
        """The objects of these names, none where one is missing or excluded."""
        found = tuple(self.by_name[name] for name in names if name in self.by_name)
        sound = len(found) == len(names) and all(item.ordinal not in self.excluded for item in found)
        return found if sound else ()

    def _relation(
        self,
        rule: str,
        items: tuple[TensorObject | ResourceObject, ...],
        size: int,
        check: Callable[[], Findings],
    ) -> Relation:
        return Relation(rule, tuple(item.ordinal for item in items), Task(size, partial(_guarded, check)))

    def _unchecked(self, rule: str, *names: str) -> Relation:
        ordinals = tuple(self.by_name[name].ordinal for name in names if name in self.by_name)
        reason = f"{rule} needs {', '.join(names)}, not all of which are there as the recipe makes them"
        return Relation(rule, ordinals, None, reason)


def _special_sources(
    facts: "Relations", claims: "Mapping[str, tuple[Restriction, ...]]"
) -> Mapping[tuple[str, str], Severity]:
    """(id list, resource with the special ids) -> how much a missing one matters."""
    sources: dict[tuple[str, str], Severity] = {
        (listed.object, listed.special_ids_from): "error" for listed in facts.id_lists
    }
    for name, covering in claims.items():
        for claim in covering:
            if claim.rule == _SPECIAL and claim.source is not None:
                key = (name, claim.source)
                sources[key] = "error" if sources.get(key) == "error" else claim.severity
    return sources


def _check_special(
    ids: TensorObject, resource: ResourceObject, severity: Severity, payload: ByteSource, pool: Pool
) -> Findings:
    findings = Findings()
    wanted, faults = _read_special(resource, payload)
    if faults:
        findings.add(
            "relations.resource_unreadable",
            f"{resource.name} does not say which ids of {ids.name} are special: {faults[0]}",
            object=resource.name,
            where={"faults": list(faults)},
            expected="a JSON object with the table of added tokens",
            found=faults[0],
            count=len(faults),
            ordinal=resource.ordinal,
            severity=severity,
        )
        return findings
    possible = np.array([token for token in wanted if token <= _LARGEST_ID], np.int64)
    stored: set[int] = set()
    buffer = pool.buffers.get("ids", min(CHUNK_BYTES, ids.bytes))
    for piece in chunks(payload, ids.offset, ids.bytes, buffer.data):
        pool.check()
        words: NDArray[np.int32] = np.frombuffer(piece, "<i4")
        stored.update(np.intersect1d(words, possible).tolist())
    for token in wanted:
        if token not in stored:
            findings.add(
                "relations.special_id_missing",
                f"special id {token} of {resource.name} does not occur in {ids.name}",
                object=ids.name,
                where={"id": token, "resource": resource.name},
                expected=f"id {token}",
                found="no such entry",
                ordinal=ids.ordinal,
                severity=severity,
            )
    return findings


def _read_special(resource: ResourceObject, payload: ByteSource) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The special ids that a stored tokenizer config names, and what keeps it from naming them."""
    if resource.bytes > CONFIG_LIMITS.bytes:
        return (), (f"{resource.bytes:,} bytes, more than {CONFIG_LIMITS.bytes:,}",)
    try:
        root, problems = strict_json.parse(
            read(payload, resource.offset, resource.bytes), CONFIG_LIMITS.depth
        )
    except Malformed as error:
        return (), (error.problem.found,)
    if problems:
        return (), tuple(f"{problem.kind}: {problem.found}" for problem in problems)
    if not isinstance(root, Members):
        return (), (f"no JSON object but {strict_json.type_name(root)}",)
    return special_ids(root)


def _check_top(ids: TensorObject, top_ids: tuple[int, ...], payload: ByteSource) -> Findings:
    findings = Findings()
    held = min(len(top_ids), elements(ids.shape))
    stored = np.frombuffer(read(payload, ids.offset, 4 * held), "<i4").tolist()
    stored += [None] * (len(top_ids) - held)
    places = [place for place, pair in enumerate(zip(stored, top_ids, strict=True)) if pair[0] != pair[1]]
    if places:
        first = places[0]
        found = "the end of the list" if stored[first] is None else str(stored[first])
        findings.add(
            "relations.top_ids_differ",
            f"entry {first} of {ids.name} is {found}, the ranking of the recipe has {top_ids[first]} there",
            object=ids.name,
            where={"index": first, "byte": 4 * first},
            expected=top_ids[first],
            found=found,
            count=len(places),
            ordinal=ids.ordinal,
        )
    return findings


def _guarded(check: Callable[[], Findings]) -> Judged:
    try:
        return check()
    except (CutShort, CannotRead) as error:
        return error
