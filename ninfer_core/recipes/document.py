"""A recipe document, schema `ninfer-recipe/1`: read whole, every fault at once, frozen afterwards.

A document stands on its own here; `plan.bind` puts it together with checkpoints.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import rfc8785

from ninfer_core import strict_json
from ninfer_core.documents.canonical import plain
from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.documents.sets import read_sets
from ninfer_core.findings import Findings
from ninfer_core.identity import DIGEST_PREFIX
from ninfer_core.io import ByteSource
from ninfer_core.recipes.rules import Rule, RuleReader
from ninfer_core.recipes.sources import Input, Resource, Source, read_input, read_resource, read_source
from ninfer_core.sources.json_text import JsonLimits, json_path, parse_object, read_object
from ninfer_core.strict_json import Members

SCHEMA: Final = "ninfer-recipe/1"
LIMITS: Final = JsonLimits(16 << 20, 64)

_REQUIRED: Final = ("schema", "identity", "recipe_id", "sources", "rules")
_OPTIONAL: Final = (
    "inputs",
    "sets",
    "resources",
    "evidence",
    "rationale",
    "checks",
    "components",
    "metadata",
)
_UNSUPPORTED: Final = ("restrictions", "cross_checks")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Cited quality evidence, kept as the document words it."""

    claim: str
    citation: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """A document in which everything fits; `digest` is `sha256:` and hex of its RFC 8785 form."""

    model_id: str
    weights_id: str
    recipe_id: str
    digest: str
    sources: Mapping[str, Source]
    inputs: Mapping[str, Input]
    resources: tuple[Resource, ...]
    rules: tuple[Rule, ...]
    evidence: tuple[Evidence, ...]
    rationale: str | None
    components: Mapping[str, Any] | None
    metadata: Mapping[str, Any] | None


def load_recipe(source: ByteSource, findings: Findings, limits: JsonLimits = LIMITS) -> Recipe | None:
    """The recipe in a file, or None after at least one error finding. Raises: CannotRead."""
    found = Findings()
    root = read_object(source, limits, found)
    return _finish(root, source.name, found, findings)


def parse_recipe(
    text: bytes, findings: Findings, name: str = "recipe", limits: JsonLimits = LIMITS
) -> Recipe | None:
    """`load_recipe` of bytes that are at hand; `name` stands for the file in findings."""
    found = Findings()
    root = parse_object(text, limits.depth, name, found)
    return _finish(root, name, found, findings)


def _finish(root: Members | None, name: str, found: Findings, findings: Findings) -> Recipe | None:
    recipe = _document(root, Faults(name, found, "recipe")) if root is not None else None
    found.blame("recipe")
    findings.extend(found)
    return None if found.errors else recipe


def _document(root: Members, faults: Faults) -> Recipe | None:
    if root.get("schema") != SCHEMA:
        found = strict_json.show(root.get("schema"))
        faults.add("schema_unknown", ("schema",), f"the schema is {found}, not {SCHEMA}.", SCHEMA, found)
        return None
    fields = Fields(faults, root, (), _REQUIRED, _OPTIONAL, _UNSUPPORTED)
    identity = Fields(faults, root.get("identity", Members()), ("identity",), ("model_id", "weights_id"))
    model_id, weights_id = identity.text("model_id"), identity.text("weights_id")
    recipe_id, rationale = fields.text("recipe_id"), fields.text("rationale")
    sources = {
        role: read_source(faults, role, value) for role, value in (fields.object("sources") or {}).items()
    }
    inputs = {
        name: read_input(faults, name, value) for name, value in (fields.object("inputs") or {}).items()
    }
    resources = [
        read_resource(faults, value, ("resources", index), sources, inputs)
        for index, value in enumerate(fields.array("resources") or [])
    ]
    reader = RuleReader(faults, sources, read_sets(fields))
    stated = fields.array("rules")
    rules = [reader.read(value, ("rules", index)) for index, value in enumerate(stated or [])]
    if stated == [] and not resources:
        fields.wrong_value("rules", "at least one rule or resource")
    _refuse_duplicates(faults, resources, rules)
    evidence = _evidence(fields)
    fields.object("checks")
    components = _components(fields)
    metadata = fields.object("metadata")
    document = plain(root, (), faults)
    if faults.findings.errors or model_id is None or weights_id is None or recipe_id is None:
        return None
    return Recipe(
        model_id,
        weights_id,
        recipe_id,
        DIGEST_PREFIX + hashlib.sha256(rfc8785.dumps(document)).hexdigest(),
        MappingProxyType({role: source for role, source in sources.items() if source is not None}),
        MappingProxyType({name: value for name, value in inputs.items() if value is not None}),
        tuple(resource for resource in resources if resource is not None),
        tuple(rule for rule in rules if rule is not None),
        evidence,
        rationale,
        None if components is None else MappingProxyType(document["components"]),
        None if metadata is None else MappingProxyType(document["metadata"]),
    )


def _refuse_duplicates(faults: Faults, resources: list[Resource | None], rules: list[Rule | None]) -> None:
    makers: dict[str, str] = {}
    made: list[tuple[Path, tuple[str, ...]]] = []
    made += [
        (("resources", i), (resource.object,)) for i, resource in enumerate(resources) if resource is not None
    ]
    made += [(("rules", i), rule.objects) for i, rule in enumerate(rules) if rule is not None]
    for path, objects in made:
        place = json_path(path)
        for name in objects:
            first = makers.get(name)
            if first is not None:
                message = f"{strict_json.show(name)} is made here and at {first}."
                found = f"{first} and {place}"
                faults.add("object_duplicate", path, message, "one maker", found, (name,), other=first)
            makers[name] = place


def _evidence(fields: Fields) -> tuple[Evidence, ...]:
    evidence = []
    for index, value in enumerate(fields.array("evidence") or []):
        entry = Fields(fields.faults, value, (*fields.path("evidence"), index), ("claim", "citation"))
        claim, citation = entry.text("claim"), entry.text("citation")
        if claim is not None and citation is not None:
            evidence.append(Evidence(claim, citation))
    return tuple(evidence)


def _components(fields: Fields) -> Members | None:
    components = fields.object("components")
    if components is not None and not isinstance(components.get("text"), Members):
        place = fields.path("components")
        fields.faults.add(
            "member_missing", place, "no component named text.", "text", "nothing", member="text"
        )
    return components
