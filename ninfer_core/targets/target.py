"""A target: the closed list of what an artifact of one identity holds, frozen after every fault was refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from ninfer_core.errors import UnknownName
from ninfer_core.formats import FORMATS, NumericFormat
from ninfer_core.layouts import LAYOUTS
from ninfer_core.layouts.base import Layout, Shape


@dataclass(frozen=True, slots=True)
class TargetObject:
    """One persistent object of the closed list.

    `shape`, `format` and `layout` are those of a tensor, `encoding` that of a resource, None for the other kind.
    `bundle` names an all-or-none group of optional objects; None means required.
    """

    name: str
    kind: Literal["tensor", "resource"]
    shape: Shape | None
    format: NumericFormat | None
    layout: Layout | None
    encoding: str | None
    bundle: str | None

    @property
    def bytes(self) -> int | None:
        """Encoded size of a tensor; a resource may have any."""
        if self.shape is None or self.format is None or self.layout is None:
            return None
        return _encoded_size(self.layout.name, self.format.name, self.shape)

    @property
    def line(self) -> str:
        """Its line in an inventory (targets, section 2)."""
        if self.shape is None or self.format is None or self.layout is None:
            return resource_line(self.name, self.encoding or "")
        return tensor_line(self.name, self.shape, self.format.name, self.layout.name)


@dataclass(frozen=True, slots=True)
class View:
    """Rows [begin, end) of a fused parent that carry a logical role; no object of the file."""

    name: str
    parent: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class ExpertView:
    """Rows of routed experts: expert e has part [a, b) in rows e*stride+a to e*stride+b of the parent."""

    parent: str
    experts: int
    stride: int
    parts: tuple[tuple[str, int, int], ...]  # name, begin, end; they tile [0, stride)


@dataclass(frozen=True, slots=True)
class Alias:
    """A role bound to stored objects, with an axis order or a range of rows where the role sees them so."""

    role: str
    objects: tuple[str, ...]
    axes: tuple[int, ...] | None
    rows: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Target:
    """A document in which everything fits; `objects` are in canonical writer order.

    `digest` is `sha256:` and hex of the RFC 8785 form, `inventory_sha256` bare hex as `checks` defines it; identity
    and inventory together name a target, since forks reuse identities.
    """

    model_id: str
    weights_id: str
    key: str | None
    recipe_id: str | None
    filename: str | None
    revisions: tuple[int, ...]  # framing revisions that the contract is stated for
    digest: str
    inventory_sha256: str
    objects: tuple[TargetObject, ...]
    by_name: Mapping[str, TargetObject]
    views: tuple[View, ...]
    aliases: tuple[Alias, ...]
    expert_views: tuple[ExpertView, ...]
    components: Mapping[str, tuple[str, ...]]  # name prefixes of each; the longest match wins
    document: Mapping[str, Any]  # plain JSON

    @property
    def identity(self) -> str:
        """`model_id/weights_id`."""
        return f"{self.model_id}/{self.weights_id}"

    @property
    def tensor_bytes(self) -> int:
        """Payload bytes of all tensors, optional ones included."""
        return sum(item.bytes or 0 for item in self.objects)

    @property
    def bundles(self) -> Mapping[str, tuple[str, ...]]:
        """The objects of each optional bundle, in writer order."""
        names: dict[str, list[str]] = {}
        for item in self.objects:
            if item.bundle is not None:
                names.setdefault(item.bundle, []).append(item.name)
        return {bundle: tuple(members) for bundle, members in names.items()}

    def component(self, name: str) -> str | None:
        """The component of an object; None when no prefix matches."""
        return component_of(name, self.components)

    def __getitem__(self, name: str) -> TargetObject:
        """The object called `name`. Raises: UnknownName."""
        if name not in self.by_name:
            raise UnknownName(f"object of {self.identity}", name, tuple(self.by_name)[:8])
        return self.by_name[name]


@lru_cache(maxsize=4096)
def _encoded_size(layout: str, fmt: str, shape: Shape) -> int:
    # Layers repeat a few shapes, and counts and hashes ask for each size several times.
    return LAYOUTS[layout].encoded_size(FORMATS[fmt], shape)


def component_of(name: str, components: Mapping[str, Sequence[str]]) -> str | None:
    """The component whose longest prefix matches."""
    matches = (
        (len(prefix), component)
        for component, prefixes in components.items()
        for prefix in prefixes
        if name.startswith(prefix)
    )
    return max(matches, default=(0, None), key=lambda match: match[0])[1]


def tensor_line(name: str, shape: Shape, format_name: str, layout_name: str) -> str:
    """`name|tensor|d0,d1|FORMAT|layout`; a scalar has no dimensions."""
    return f"{name}|tensor|{','.join(map(str, shape))}|{format_name}|{layout_name}"


def resource_line(name: str, encoding: str) -> str:
    """`name|resource|||encoding`."""
    return f"{name}|resource|||{encoding}"
