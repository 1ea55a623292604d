"""A recipe document, schema `ninfer-recipe/1`: read whole, every fault at once, frozen afterwards.

A document stands on its own here; `binding.bind` puts it together with checkpoints.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import rfc8785

from ninfer_core.documents.canonical import plain
from ninfer_core.documents.fields import Faults, Fields, refuse_schema
from ninfer_core.documents.sets import Sets, read_sets
from ninfer_core.findings import Findings
from ninfer_core.identity import DIGEST_PREFIX
from ninfer_core.io import ByteSource
from ninfer_core.recipes.checks import Checks, read_checks
from ninfer_core.recipes.claims import check_pairs, check_scopes
from ninfer_core.recipes.contradictions import check_reading
from ninfer_core.recipes.crosschecks import CrossCheck, CrossCheckReader
from ninfer_core.recipes.duplicates import refuse_duplicates
from ninfer_core.recipes.encoders import ENCODERS
from ninfer_core.recipes.fitting import Fitting, stated_target
from ninfer_core.recipes.inputs import Input, Known, read_input
from ninfer_core.recipes.restrictions import Restriction, read_restrictions
from ninfer_core.recipes.rules import Budget, Rule, RuleReader, gathers
from ninfer_core.recipes.sources import Resource, Source, read_resource, read_source
from ninfer_core.sources.json_text import JsonLimits, parse_object, read_object
from ninfer_core.strict_json import Members
from ninfer_core.targets import Target

SCHEMA: Final = "ninfer-recipe/1"
LIMITS: Final = JsonLimits(16 << 20, 64)

_REQUIRED: Final = ("schema", "identity", "recipe_id", "sources", "rules")
_OPTIONAL: Final = (
    "inputs",
    "sets",
    "resources",
    "restrictions",
    "cross_checks",
    "evidence",
    "rationale",
    "checks",
    "components",
    "metadata",
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Cited quality evidence, kept as the document words it."""

    claim: str
    citation: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """A document in which everything fits; `digest` is `sha256:` and hex of its RFC 8785 form.

    `target` is the contract that it fills: the one that was given, else the registered one that states the formats
    which its rules leave out, else None.
    """

    model_id: str
    weights_id: str
    recipe_id: str
    digest: str
    sources: Mapping[str, Source]
    inputs: Mapping[str, Input]
    resources: tuple[Resource, ...]
    rules: tuple[Rule, ...]
    restrictions: tuple[Restriction, ...]
    cross_checks: tuple[CrossCheck, ...]
    evidence: tuple[Evidence, ...]
    rationale: str | None
    checks: Checks
    components: Mapping[str, Any] | None
    metadata: Mapping[str, Any] | None
    target: Target | None


def load_recipe(
    source: ByteSource, findings: Findings, limits: JsonLimits = LIMITS, target: Target | None = None
) -> Recipe | None:
    """The recipe in a file, or None after at least one error finding. Raises: CannotRead."""
    found = Findings()
    root = read_object(source, limits, found)
    return _finish(root, source.name, found, findings, target)


def parse_recipe(
    text: bytes,
    findings: Findings,
    name: str = "recipe",
    limits: JsonLimits = LIMITS,
    target: Target | None = None,
) -> Recipe | None:
    """`load_recipe` of bytes that are at hand; `name` stands for the file in findings."""
    found = Findings()
    root = parse_object(text, limits.depth, name, found)
    return _finish(root, name, found, findings, target)


def _finish(
    root: Members | None, name: str, found: Findings, findings: Findings, target: Target | None
) -> Recipe | None:
    recipe = None if root is None else _document(root, Faults(name, found, "recipe"), target)
    found.blame("recipe")
    findings.extend(found)
    return None if found.errors else recipe


def _document(root: Members, faults: Faults, target: Target | None) -> Recipe | None:
    if root.get("schema") != SCHEMA:
        refuse_schema(faults, root.get("schema"), SCHEMA)
        return None
    fields = Fields(faults, root, (), _REQUIRED, _OPTIONAL)
    stated: Mapping[str, Any] = plain(root, (), faults)
    identity = Fields(faults, root.get("identity", Members()), ("identity",), ("model_id", "weights_id"))
    model_id, weights_id = identity.text("model_id"), identity.text("weights_id")
    recipe_id, rationale = fields.text("recipe_id"), fields.text("rationale")
    sets = read_sets(fields)
    sources = {
        role: read_source(faults, role, value, sets)
        for role, value in (fields.object("sources") or {}).items()
    }
    inputs = {
        name: read_input(faults, name, value) for name, value in (fields.object("inputs") or {}).items()
    }
    resources = [
        read_resource(faults, value, ("resources", index), sources, inputs)
        for index, value in enumerate(fields.array("resources") or [])
    ]
    made = [resource.object for resource in resources if resource is not None]
    if target is None and model_id and weights_id and recipe_id and _leaves_formats_out(root):
        target = stated_target(model_id, weights_id, recipe_id)
    rules = _rules(fields, Known(sources, inputs, made), sets, target, stated)
    if fields.raw("rules") == [] and not resources:
        fields.wrong_value("rules", "at least one rule or resource")
    refuse_duplicates(faults, fields.raw("rules"), resources, rules)
    sound = tuple(rule for rule in rules if rule is not None)
    kept = tuple(resource for resource in resources if resource is not None)
    producers = [rule.producer.name for rule in sound if rule.producer is not None]
    restrictions = read_restrictions(fields, made, dict.fromkeys((*ENCODERS, *producers)))
    cross_checks = CrossCheckReader(faults, sources, sets).read(fields)
    evidence, checks = _evidence(fields), read_checks(fields)
    components = _components(fields)
    metadata = _metadata(fields)
    if not faults.findings.errors:
        # Of a document with faults these would only repeat what is missing already.
        check_scopes(faults, restrictions, sound)
        check_pairs(faults, sound)
        check_reading(faults, sources, cross_checks, sound)
    if target is not None:
        complete = not faults.findings.errors
        fitting = Fitting(faults, target)
        _compare(fitting, resources, rules)
        if complete and model_id and weights_id:
            fitting.compare_identity(model_id, weights_id)
            fitting.require_made([*made, *(name for rule in sound for name in rule.objects)])
    if faults.findings.errors or model_id is None or weights_id is None or recipe_id is None:
        return None
    return Recipe(
        model_id,
        weights_id,
        recipe_id,
        DIGEST_PREFIX + hashlib.sha256(rfc8785.dumps(dict(stated))).hexdigest(),
        MappingProxyType({role: source for role, source in sources.items() if source is not None}),
        MappingProxyType({name: value for name, value in inputs.items() if value is not None}),
        kept,
        sound,
        restrictions,
        cross_checks,
        evidence,
        rationale,
        checks,
        None if components is None else MappingProxyType(stated["components"]),
        None if metadata is None else MappingProxyType(stated["metadata"]),
        target,
    )


def _leaves_formats_out(root: Members) -> bool:
    rules = root.get("rules")
    return isinstance(rules, list) and any(
        isinstance(rule, Members) and "format" not in rule for rule in rules
    )


def _rules(
    fields: Fields, known: Known, sets: Sets, target: Target | None, stated: Mapping[str, Any]
) -> list[Rule | None]:
    """Rules in document order, and their findings too, though those that gather rows are read last."""
    values = fields.array("rules") or []
    budget = Budget()
    found: list[tuple[Findings, Rule | None]] = [(Findings(), None)] * len(values)
    late = [gathers(value.get("value")) if isinstance(value, Members) else False for value in values]
    for index in sorted(range(len(values)), key=late.__getitem__):
        value, findings = values[index], Findings()
        faults = Faults(fields.faults.file, findings, fields.faults.check)
        template = stated["rules"][index].get("value") if isinstance(value, Members) else None
        reader = RuleReader(faults, known, sets, target, budget)
        rule = reader.read(value, ("rules", index), template if isinstance(template, dict) else {})
        found[index] = (findings, rule)
    for findings, _ in found:
        fields.faults.findings.extend(findings)
    return [rule for _, rule in found]


def _compare(fitting: Fitting, resources: list[Resource | None], rules: list[Rule | None]) -> None:
    for index, resource in enumerate(resources):
        if resource is not None:
            fitting.compare_names(("resources", index), [resource.object], "resource")
    for index, rule in enumerate(rules):
        if rule is not None:
            fitting.compare_rule(("rules", index), rule)


def _evidence(fields: Fields) -> tuple[Evidence, ...]:
    evidence = []
    for index, value in enumerate(fields.array("evidence") or []):
        entry = Fields(fields.faults, value, (*fields.path("evidence"), index), ("claim", "citation"))
        claim, citation = entry.text("claim"), entry.text("citation")
        if claim is not None and citation is not None:
            evidence.append(Evidence(claim, citation))
    return tuple(evidence)


def _components(fields: Fields) -> Members | None:
    """What a directory of revision 3 demands of its components is demanded here already, before any work."""
    components = fields.object("components")
    if components is None:
        return None
    every = Fields(fields.faults, components, fields.path("components"), ("text",), tuple(components))
    for name in components:
        component = every.object(name)
        if component is not None:
            Fields(fields.faults, component, every.path(name), ("config",), tuple(component)).object("config")
    return components


def _metadata(fields: Fields) -> Members | None:
    """As `_components`: the name in a directory's metadata, if there is one, is a nonempty text."""
    metadata = fields.object("metadata")
    if metadata is not None:
        Fields(fields.faults, metadata, fields.path("metadata"), (), tuple(metadata)).text("name")
    return metadata
