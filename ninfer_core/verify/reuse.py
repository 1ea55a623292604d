"""Results that hold already: what an earlier run established, and the key under which a result may stand again.

A result is taken over only where everything it rests on is equal. It then says what was proved of these words once;
it says nothing about the bytes that lie on a disk today.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from ninfer_core.identity import FileDigest, canonical_digest
from ninfer_core.recipes.plan import Plan, ResourcePlan, TensorPlan
from ninfer_core.recipes.restrictions import Restriction
from ninfer_core.verify.against import Against, ObjectPlan
from ninfer_core.verify.checks import CHECKS, Asked
from ninfer_core.verify.report import ObjectResult, versions


@dataclass(frozen=True, slots=True)
class Known:
    """What need not be read again.

    `files` are the digests of the artifact's files in the order of its sources, None to take them; `objects` holds,
    by ordinal, results with `reused` set; with `source` the work of check `source` is done. `digests` asks for those of
    the files even where no check reads an object.
    """

    files: tuple[FileDigest, ...] | None = None
    objects: Mapping[int, ObjectResult] = field(default_factory=dict)
    source: bool = False
    digests: bool = False


class SourceDigests(Protocol):
    """Names for the content that a recipe reads: equal names mean equal bytes."""

    def tensor(self, role: str, name: str) -> str:
        """Of a source tensor."""
        ...

    def file(self, role: str | None, name: str) -> str:
        """Of a file of a role, or of an input where `role` is None."""
        ...


def object_key(
    identity: str,
    asked: Asked,
    against: Against,
    plan: ObjectPlan | None,
    claims: Iterable[Restriction],
    digests: SourceDigests,
    related: Sequence[str] = (),
) -> str:
    """`sha256:` of all that the result of one object rests on: two results of one key are the same result.

    `claims` are the restrictions judged for the object; `related` are the identities of the objects that check
    `relations` sees together with it, in order. Raises: rfc8785.CanonicalizationError.
    """
    sample = against.sample
    return canonical_digest(
        {
            "identity": identity,
            "checks": [name for name in CHECKS if name in asked],
            "target": against.target_digest,
            "canonical": against.canonical,
            "sample": None if sample is None else {"fraction": sample.fraction, "seed": sample.seed},
            "claims": [[one.rule, one.basis, one.minimum, one.maximum, one.source] for one in claims],
            "rule": None if plan is None else _rule(plan, against, digests),
            "related": list(related),
            "versions": versions(),
        }
    )


def _rule(plan: ObjectPlan, against: Against, digests: SourceDigests) -> dict[str, Any]:
    if isinstance(plan, ResourcePlan):
        return {"resource": digests.file(plan.role, plan.file)}
    rule: dict[str, Any] = {
        "tree": dict(plan.tree),
        "encode": plan.encode,
        "producer": None if plan.producer is None else asdict(plan.producer),
        "sources": [[role, name, digests.tensor(role, name)] for role, name in plan.sources],
        "inputs": [[name, digests.file(None, name)] for name in plan.inputs],
    }
    if against.plan is not None and _makes_ids(plan.tree):
        # Row numbers come out of other rules, out of inputs and resources: all of them take part.
        whole = against.plan
        rule["recipe"] = whole.recipe.digest
        rule["files"] = [
            [item.role, item.file, digests.file(item.role, item.file)]
            for item in whole.objects
            if isinstance(item, ResourcePlan)
        ]
        rule["inputs"] = [[name, digests.file(None, name)] for name in whole.inputs]
        rule["ids"] = [
            [role, name, digests.tensor(role, name)] for role, name in _sources_of_ids(plan.tree, whole)
        ]
    return rule


def _makes_ids(tree: Any) -> bool:
    return any(node["op"] in ("gather_rows", "ranked_token_ids") for node in _nodes(tree))


def _sources_of_ids(tree: Any, plan: Plan) -> list[tuple[str, str]]:
    """(role, tensor) of every source of the objects that rows are gathered by, and of those these are gathered by."""
    made = {item.name: item for item in plan.objects if isinstance(item, TensorPlan)}
    ahead, found = [tree], dict[str, TensorPlan]()
    while ahead:
        for node in _nodes(ahead.pop()):
            name = node.get("ids")
            if node["op"] == "gather_rows" and name in made and name not in found:
                found[name] = made[name]
                ahead.append(made[name].tree)
    return [source for name in sorted(found) for source in found[name].sources]


def _nodes(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Every operation of an expanded tree."""
    if isinstance(tree, list):
        for part in tree:
            yield from _nodes(part)
    elif isinstance(tree, Mapping):
        yield tree
        yield from _nodes(tree.get("of"))
