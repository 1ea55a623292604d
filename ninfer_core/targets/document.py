"""A target document, schema `ninfer-target/1`: read whole, every fault at once, frozen afterwards."""

from types import MappingProxyType
from typing import Final

from ninfer_core.documents.canonical import plain
from ninfer_core.documents.fields import Faults, Fields, refuse_schema
from ninfer_core.documents.sets import read_sets
from ninfer_core.findings import Findings
from ninfer_core.identity import canonical_digest
from ninfer_core.io import ByteSource, is_plain_name
from ninfer_core.sources.json_text import JsonLimits, parse_object, read_object
from ninfer_core.strict_json import Members
from ninfer_core.targets.agreement import check_hashes, check_totals, own_hashes, read_components
from ninfer_core.targets.expansion import Expansion
from ninfer_core.targets.objects import read_layouts, read_objects
from ninfer_core.targets.target import Target
from ninfer_core.targets.views import Names, count_templates, read_aliases, read_expert_views, read_views

SCHEMA: Final = "ninfer-target/1"
LIMITS: Final = JsonLimits(16 << 20, 64)
REVISIONS: Final = (1, 2)  # a contract is stated for files with an identity; revision 3 has none

_REQUIRED: Final = ("schema", "identity", "objects")
_OPTIONAL: Final = (
    "target_key",
    "recipe_id",
    "canonical_filename",
    "container_versions",
    "facts",
    "layouts",
    "sets",
    "views",
    "aliases",
    "expert_views",
    "components",
    "totals",
    "checks",
    "published_artifacts",
)


def load_target(source: ByteSource, findings: Findings, limits: JsonLimits = LIMITS) -> Target | None:
    """The target in a file, or None after at least one error finding. Raises: CannotRead."""
    found = Findings()
    root = read_object(source, limits, found)
    return _finish(root, source.name, found, findings)


def parse_target(
    text: bytes, findings: Findings, name: str = "target", limits: JsonLimits = LIMITS
) -> Target | None:
    """`load_target` of bytes that are at hand; `name` stands for the file in findings."""
    found = Findings()
    root = parse_object(text, limits.depth, name, found)
    return _finish(root, name, found, findings)


def _finish(root: Members | None, name: str, found: Findings, findings: Findings) -> Target | None:
    target = _document(root, Faults(name, found, "target")) if root is not None else None
    found.blame("target")
    findings.extend(found)
    return None if found.errors else target


def _document(root: Members, faults: Faults) -> Target | None:
    if root.get("schema") != SCHEMA:
        refuse_schema(faults, root.get("schema"), SCHEMA)
        return None
    fields = Fields(faults, root, (), _REQUIRED, _OPTIONAL)
    identity = Fields(faults, root.get("identity", Members()), ("identity",), ("model_id", "weights_id"))
    model_id, weights_id = identity.text("model_id"), identity.text("weights_id")
    expansion = Expansion(faults, read_sets(fields))
    objects = read_objects(fields, expansion, read_layouts(fields))
    by_name = {item.name: item for item in objects}
    complete = (
        not faults.findings.errors
    )  # of an incomplete list nothing more can be said that is not a repetition
    names = Names(by_name)
    views = read_views(fields, expansion, by_name, names) if complete else ()
    expert_views = read_expert_views(fields, expansion, by_name) if complete else ()
    aliases = read_aliases(fields, expansion, by_name, names) if complete else ()
    bound = not faults.findings.errors
    components = read_components(fields, expansion, objects) if complete else {}
    if complete:
        check_totals(fields, objects)
    own = own_hashes(objects, views) if bound else {}
    if bound:
        templates = {member: count_templates(root, member) for member in ("views", "aliases")}
        check_hashes(fields, own, templates, {"views": len(views), "aliases": len(aliases)})
    key, recipe_id, filename = fields.text("target_key"), fields.text("recipe_id"), _filename(fields)
    revisions = _revisions(fields)
    fields.object("facts")
    fields.array("published_artifacts")
    document = plain(root, (), faults)
    if faults.findings.errors or model_id is None or weights_id is None:
        return None
    return Target(
        model_id,
        weights_id,
        key,
        recipe_id,
        filename,
        revisions,
        canonical_digest(document),
        own["inventory_sha256"],
        objects,
        MappingProxyType(by_name),
        views,
        aliases,
        expert_views,
        MappingProxyType(dict(components)),
        MappingProxyType(document),
    )


def _filename(fields: Fields) -> str | None:
    name = fields.text("canonical_filename")
    if name is not None and not is_plain_name(name):
        fields.wrong_value("canonical_filename", "a plain file name")
        return None
    return name


def _revisions(fields: Fields) -> tuple[int, ...]:
    """The framing revisions that the contract is stated for: both, unless the document says otherwise."""
    stated = fields.integers("container_versions", 1)
    if stated is None:
        return REVISIONS
    if not stated or len(set(stated)) != len(stated) or not set(stated) <= set(REVISIONS):
        fields.wrong_value("container_versions", "some of 1 and 2, each once")
    return stated
