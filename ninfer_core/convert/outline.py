"""What a recipe would write, before any of it is: every object with its size and its making, and the size of the file."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from ninfer_core.containers.writer import (
    WRITABLE_REVISIONS,
    ObjectSpec,
    ResourceSpec,
    TensorSpec,
    blueprint,
)
from ninfer_core.documents.templates import assignments, fill
from ninfer_core.errors import Usage
from ninfer_core.findings import Findings
from ninfer_core.layouts import RESOURCE_ENCODING, canonical_layout
from ninfer_core.recipes.accounting import accounting_json
from ninfer_core.recipes.claims import claims
from ninfer_core.recipes.crosschecks import EqualSourceTensors
from ninfer_core.recipes.document import Recipe
from ninfer_core.recipes.encoders import COPY_BYTES
from ninfer_core.recipes.expansion import recipe_sha256
from ninfer_core.recipes.heading import heading
from ninfer_core.recipes.nodes import RankedTokenIds
from ninfer_core.recipes.plan import Plan, ResourcePlan
from ninfer_core.recipes.restrictions import Restriction
from ninfer_core.recipes.sources import Resource
from ninfer_core.recipes.trees import expanded_tree
from ninfer_core.verify.report import finding_json, versions

SCHEMA: Final = "ninfer-gate/recipe/1"

SHARED_WORDS: Final = "whether tensors that two roles must share hold the same words"
NOT_LOOKED_AT: Final = (  # by whoever encodes nothing
    "whether source values are finite and fit the scales of their encoders",
    "whether the values of a cast fit its type",
    "whether codes and scales of quantized source matrices are legal words",
    "whether what would be written meets the restrictions and relations of the recipe",
)


@dataclass(frozen=True, slots=True)
class Outlined:
    """One object; a resource has no `spec` where nobody gave or pinned its file, so that its size is not known.

    `sources` are (role, tensor) of a tensor, (role or None, file or input) of a resource; `moves` is the expanded tree.
    """

    name: str
    spec: ObjectSpec | None
    encode: str
    foreign: bool
    sources: tuple[tuple[str | None, str], ...]
    inputs: tuple[str, ...]
    moves: Mapping[str, Any] | None
    claims: tuple[Restriction, ...]
    rule: str

    @property
    def bytes(self) -> int | None:
        """Encoded size."""
        return None if self.spec is None else self.spec.bytes

    def as_json(self) -> dict[str, Any]:
        """Strict JSON values."""
        spec = self.spec
        kind = (
            {
                "kind": "tensor",
                "format": spec.format.name,
                "layout": spec.layout.name,
                "shape": list(spec.shape),
            }
            if isinstance(spec, TensorSpec)
            else {"kind": "resource", "encoding": RESOURCE_ENCODING}
        )
        return {
            "name": self.name,
            **kind,
            "bytes": self.bytes,
            "encode": self.encode,
            "foreign": self.foreign,
            "sources": [_source_json(kind["kind"] == "tensor", *source) for source in self.sources],
            "inputs": list(self.inputs),
            "moves": self.moves,
            "claims": [
                {"rule": claim.rule, "basis": claim.basis, "path": claim.path} for claim in self.claims
            ],
            "rule": self.rule,
        }


def _source_json(tensor: bool, role: str | None, name: str) -> dict[str, str | None]:
    return {"role": role, ("tensor" if tensor else "file"): name}


@dataclass(frozen=True, slots=True)
class Outline:
    """A recipe's objects in writer order; `file_bytes` by revision, None where a size is not known."""

    recipe: Recipe
    plan: Plan | None
    objects: tuple[Outlined, ...]
    file_bytes: Mapping[int, int | None]
    sources_seen: bool  # whether there were sources to compare, be there a plan of them or not

    @property
    def not_looked_at(self) -> tuple[str, ...]:
        """What `convert` may still refuse, since only it reads the words that say so."""
        if not self.sources_seen:
            return ("any source", *NOT_LOOKED_AT)
        shared = any(isinstance(check, EqualSourceTensors) for check in self.recipe.cross_checks)
        return (SHARED_WORDS, *NOT_LOOKED_AT) if shared and self.plan is None else NOT_LOOKED_AT

    @property
    def restricted(self) -> Iterator[tuple[Restriction, int]]:
        """The restrictions of the recipe, each with how many objects it covers."""
        covered = Counter(claim.path for item in self.objects for claim in item.claims)
        return ((restriction, covered[restriction.path]) for restriction in self.recipe.restrictions)

    def as_json(self, findings: Findings) -> dict[str, Any]:
        """Strict JSON values, schema `ninfer-gate/recipe/1`."""
        recipe, target = self.recipe, self.recipe.target
        return {
            "schema": SCHEMA,
            "verdict": "refused" if findings.errors else "sound",
            "recipe": {
                "recipe_id": recipe.recipe_id,
                "digest": recipe.digest,
                "model_id": recipe.model_id,
                "weights_id": recipe.weights_id,
                "expanded_sha256": recipe_sha256(recipe),
                "stated_expanded_sha256": recipe.checks.recipe_sha256,
                "target_digest": None if target is None else target.digest,
            },
            "bound": self.plan is not None,
            "not_looked_at": list(self.not_looked_at),
            "objects": [item.as_json() for item in self.objects],
            "totals": {
                "objects": len(self.objects),
                "file_bytes": {str(revision): size for revision, size in self.file_bytes.items()},
            },
            "accounting": {} if self.plan is None else accounting_json(self.plan.accounting),
            "findings": [finding_json(finding) for finding in findings],
            "versions": versions(),
        }


def unreadable_json(findings: Findings) -> dict[str, Any]:
    """The same document where there is no recipe to speak of."""
    return {
        "schema": SCHEMA,
        "verdict": "refused",
        "recipe": None,
        "bound": False,
        "not_looked_at": ["any source", *NOT_LOOKED_AT],
        "objects": [],
        "totals": {"objects": 0, "file_bytes": {}},
        "accounting": {},
        "findings": [finding_json(finding) for finding in findings],
        "versions": versions(),
    }


def outline(
    recipe: Recipe,
    plan: Plan | None,
    entry: str = "artifact.ninfer",
    max_file_bytes: int | None = None,
    sources_seen: bool = False,
) -> Outline:
    """What `recipe` makes into files named after `entry`; with a plan, sizes of resources are those of their files.

    `sources_seen` says that the recipe was held against sources; a plan implies it.
    """
    sizes = (
        {}
        if plan is None
        else {item.name: item.source.size for item in plan.objects if isinstance(item, ResourcePlan)}
    )
    objects = [_resource(resource, sizes) for resource in recipe.resources]
    objects += _tensors(recipe)
    if recipe.target is not None:
        places = {item.name: place for place, item in enumerate(recipe.target.objects)}
        objects.sort(key=lambda item: places[item.name])
    specs = [item.spec for item in objects if item.spec is not None]
    totals: dict[int, int | None] = dict.fromkeys(WRITABLE_REVISIONS)
    if len(specs) == len(objects):
        for revision in WRITABLE_REVISIONS:
            with suppress(Usage):  # the limit of a file leaves no room for this revision
                totals[revision] = blueprint(entry, specs, heading(recipe), revision, max_file_bytes).bytes
    return Outline(recipe, plan, tuple(objects), totals, sources_seen or plan is not None)


def _resource(resource: Resource, sizes: Mapping[str, int]) -> Outlined:
    size = sizes.get(resource.object, resource.pin.bytes)
    return Outlined(
        resource.object,
        None if size is None else ResourceSpec(resource.object, size),
        COPY_BYTES,
        False,
        ((resource.role, resource.file or resource.input or ""),),
        () if resource.input is None else (resource.input,),
        None,
        (),
        resource.path,
    )


def _tensors(recipe: Recipe) -> Iterator[Outlined]:
    covering = claims(recipe)
    for rule in recipe.rules:
        ranked = rule.value if isinstance(rule.value, RankedTokenIds) else None
        leaves = tuple(dict.fromkeys(rule.leaves))
        for name, fmt, values in zip(rule.objects, rule.formats, assignments(rule.each), strict=True):
            yield Outlined(
                name,
                TensorSpec(name, rule.value.shape, fmt, canonical_layout(fmt)),
                rule.maker,
                rule.producer is not None,
                tuple(dict.fromkeys((leaf.role, fill(leaf.name, values)) for leaf in leaves)),
                () if ranked is None else (ranked.ranking,),
                expanded_tree(rule.template, values),
                covering[name],
                rule.path,
            )
