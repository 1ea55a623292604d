"""Where a recipe takes things from: checkpoints by role, and the resources copied out of them."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from ninfer_core import strict_json
from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.documents.sets import Sets
from ninfer_core.recipes.configs import ConfigRules, read_config_rules
from ninfer_core.recipes.encoders import COPY_BYTES, read_encoder
from ninfer_core.recipes.inputs import Pin, plain_name, read_pin
from ninfer_core.sources.checkpoint import Kind
from ninfer_core.sources.json_text import json_path, listed
from ninfer_core.strict_json import Json

_CLAIMS: Final = ("repository", "revision", "license")
_ANY_PLACE: Final = ("file", "index", "shards", "shard_set_equals_index")
_PLACES: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {  # kind: required, optional
    Kind.FILE: (("file",), ()),
    Kind.INDEX: (("index",), ("shards", "shard_set_equals_index")),
}
_OPTIONAL: Final = (
    "exact_tensor_names",
    "mirror",
    "upstream_preflight_tensors",
    "config_requires",
    "config_absent",
    "layer_types",
    "side_files",
)


@dataclass(frozen=True, slots=True)
class Source:
    """A checkpoint that the recipe reads; repository, revision, license and mirror are claims of the document.

    `preflight_tensors` is how many tensors upstream's own preflight asks for, whether they are read or not.
    """

    role: str
    repository: str
    revision: str
    license: str
    kind: Kind
    file: str  # the safetensors file, or the index
    shards: int | None
    exact_tensor_names: bool
    shard_set_equals_index: bool
    mirror: str | None
    preflight_tensors: int | None
    config: ConfigRules


@dataclass(frozen=True, slots=True)
class Resource:
    """An object that is a file, byte for byte: `file` of checkpoint `role`, or the input `input`."""

    path: str
    object: str
    role: str | None
    file: str | None
    input: str | None
    pin: Pin


def read_source(faults: Faults, role: str, value: Json, sets: Sets) -> Source | None:
    """The source of `role`, or None after findings."""
    path: Path = ("sources", role)
    kind = value.get("kind") if isinstance(value, dict) else None
    required, optional = _PLACES.get(kind if isinstance(kind, str) else "", ((), _ANY_PLACE))
    fields = Fields(faults, value, path, (*_CLAIMS, "kind", *required), (*optional, *_OPTIONAL))
    claims = [fields.text(name) for name in _CLAIMS]
    chosen = fields.choice("kind", *Kind)
    file = plain_name(fields, "index" if kind == Kind.INDEX else "file")
    exact = fields.flag("exact_tensor_names")
    shards, equal = fields.integer("shards", 1), fields.flag("shard_set_equals_index")
    mirror, preflight = fields.text("mirror"), fields.integer("upstream_preflight_tensors", 1)
    config = read_config_rules(fields, sets)
    repository, revision, licence = claims
    if repository is None or revision is None or licence is None or chosen is None or file is None:
        return None
    return Source(
        role,
        repository,
        revision,
        licence,
        Kind(chosen),
        file,
        shards,
        exact,
        equal,
        mirror,
        preflight,
        config,
    )


def read_resource(
    faults: Faults, value: Json, path: Path, roles: Collection[str], inputs: Collection[str]
) -> Resource | None:
    """The resource at `path`, or None after findings."""
    from_input = isinstance(value, dict) and "input" in value
    origin = ("input",) if from_input else ("from", "file")
    fields = Fields(faults, value, path, ("object", *origin, "encode"), ("bytes", "sha256"))
    name = fields.text("object")
    encode = read_encoder(faults, fields)
    if encode is not None and encode != COPY_BYTES:
        message = f"a resource is made by {COPY_BYTES}, not by {encode}."
        faults.add("encoder_format", fields.path("encode"), message, COPY_BYTES, encode)
    role = _known(fields, "from", "source_undefined", roles)
    source_input = _known(fields, "input", "input_undefined", inputs)
    file = plain_name(fields, "file")
    pin = read_pin(fields)
    if name is None:
        return None
    return Resource(json_path(path), name, role, file, source_input, pin)


def _known(fields: Fields, member: str, slug: str, names: Collection[str]) -> str | None:
    name = fields.text(member)
    if name is not None and name not in names:
        known, shown = listed(names), strict_json.show(name)
        fields.faults.add(
            slug, fields.path(member), f"{shown} is not defined (defined: {known}).", known, shown
        )
        return None
    return name
