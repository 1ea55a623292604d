"""What a reader hands out: frozen values, already checked. Past this line nobody checks structure again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ninfer_core.formats import NumericFormat
from ninfer_core.io import ByteSource
from ninfer_core.layouts.base import Layout, Shape


@dataclass(frozen=True, slots=True)
class Limits:
    """What a reader accepts at most, whatever a file says."""

    directory_bytes: int = 64 << 20
    depth: int = 16
    objects: int = 500_000


@dataclass(frozen=True, slots=True)
class TensorObject:
    """A tensor whose entry is legal and whose bytes are all there; `offset` counts from the payload's start."""

    ordinal: int
    name: str
    shape: Shape
    format: NumericFormat
    layout: Layout
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ResourceObject:
    """A resource whose bytes are all there."""

    ordinal: int
    name: str
    encoding: str
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class BrokenObject:
    """An entry with an error: listed with what could be read of it, never read itself."""

    ordinal: int
    name: str | None
    kind: str | None
    shape: Shape | None
    format: str | None
    layout: str | None
    offset: int | None
    bytes: int | None
    lost: bool = False  # nothing is wrong with the entry; the file with its bytes is not there

    @property
    def label(self) -> str:
        """Its name, or its place where the entry gives no name."""
        return self.name if self.name is not None else f"objects[{self.ordinal}]"


ArtifactObject = TensorObject | ResourceObject | BrokenObject


@dataclass(frozen=True, slots=True)
class PayloadFile:
    """One file of the artifact and the part of the logical payload it holds."""

    source: ByteSource
    header_bytes: int  # magic to the end of the JSON, or the fixed header of a part
    payload_offset: int
    payload_bytes: int


@dataclass(frozen=True, slots=True)
class Artifact:
    """A `.ninfer` artifact of any revision, normalised: canonical names, offsets into one logical payload."""

    revision: int
    model_id: str | None
    weights_id: str | None
    name: str | None
    objects: tuple[ArtifactObject, ...]
    listed: bool  # whether the list of objects could be read at all
    sources: tuple[ByteSource, ...]  # the entry, and the parts that are there
    whole: bool  # whether every file of the artifact is there and known
    files: tuple[PayloadFile, ...]
    payload: ByteSource
    logical_start: int  # where the payload begins in the logical file: the entry's payload offset
    sections: Mapping[str, Any] = field(
        default_factory=dict
    )  # revision 3: components, bindings, uses, metadata, provenance

    @property
    def tensors(self) -> tuple[TensorObject, ...]:
        """The readable tensors."""
        return tuple(item for item in self.objects if isinstance(item, TensorObject))

    @property
    def readable(self) -> tuple[TensorObject | ResourceObject, ...]:
        """Every object whose bytes may be read."""
        return tuple(item for item in self.objects if not isinstance(item, BrokenObject))
