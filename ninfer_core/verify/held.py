"""Which objects lie in one file whole and are large: their digests are taken in one reading with that of the file."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from ninfer_core.containers.directory import Artifact, TensorObject
from ninfer_core.sources.checkpoint import Checkpoint

HELD_BYTES: Final = 1 << 20  # what is smaller is read once, by a task that hashes and checks it


@dataclass(frozen=True, slots=True)
class Held:
    """An object that lies in one file whole: bytes [begin, end) of it."""

    ordinal: int
    begin: int
    end: int


HeldByFile = tuple[tuple[Held, ...], ...]
"""For each file of an artifact, in the order of its files, the objects in the order of their bytes."""


def nothing(files: int) -> HeldByFile:
    """No object of so many files."""
    return ((),) * files


def of_artifact(artifact: Artifact, tensors: Iterable[TensorObject]) -> HeldByFile:
    """Of these tensors of a `.ninfer` artifact."""
    inside: dict[int, list[Held]] = {id(source): [] for source in artifact.sources}
    ends = list(accumulate(file.payload_bytes for file in artifact.files))
    for item in tensors:
        place = bisect_right(ends, item.offset)
        if place == len(ends) or item.offset + item.bytes > ends[place]:
            continue  # two files share it
        file = artifact.files[place]
        begin = file.payload_offset + item.offset - (ends[place] - file.payload_bytes)
        if id(file.source) in inside:
            inside[id(file.source)].append(Held(item.ordinal, begin, begin + item.bytes))
    return tuple(_chosen(inside[id(source)]) for source in artifact.sources)


def of_checkpoint(checkpoint: Checkpoint) -> HeldByFile:
    """Of the tensors of safetensors files."""
    inside: dict[str, list[Held]] = {file.name: [] for file in checkpoint.files}
    for ordinal, tensor in enumerate(checkpoint.tensors.values()):
        inside[tensor.file].append(Held(ordinal, tensor.offset, tensor.offset + tensor.bytes))
    return tuple(map(_chosen, inside.values()))


def _chosen(objects: Iterable[Held]) -> tuple[Held, ...]:
    """Of two that overlap, the first."""
    chosen: list[Held] = []
    for one in sorted(objects, key=lambda one: (one.begin, one.end, one.ordinal)):
        if one.end - one.begin >= HELD_BYTES and (not chosen or chosen[-1].end <= one.begin):
            chosen.append(one)
    return tuple(chosen)
