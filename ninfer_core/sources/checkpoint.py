"""A checkpoint: one safetensors file, or an index and its shards, open for exact reads by tensor name."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ninfer_core.errors import Usage
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, FileSet
from ninfer_core.sources.dtypes import DTYPES
from ninfer_core.sources.json_text import listed
from ninfer_core.sources.safetensors import Header, HeaderLimits, SourceTensor, read_header
from ninfer_core.sources.sharded import read_index

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Words = NDArray[np.unsignedinteger[Any]]

SUFFIX: Final = ".safetensors"
INDEX_SUFFIX: Final = ".safetensors.index.json"


class Kind(StrEnum):
    """How a checkpoint is stored; the spelling is that of recipes."""

    FILE = "safetensors-file"
    INDEX = "safetensors-index"


class Located(NamedTuple):
    """What `detect` found: the kind, and the name of the file or of the index."""

    kind: Kind
    name: str


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """One file that the checkpoint was read from."""

    name: str
    bytes: int


class Checkpoint:
    """Tensors by name, in the order of the index or header; any thread may read."""

    def __init__(
        self,
        located: Located,
        files: FileSet,
        read_from: Mapping[str, ByteSource],
        headers: Mapping[str, Header],
    ) -> None:
        """`read_from` holds every file that was read, by name; `headers` those with tensors."""
        self.kind, self.name = located
        self.folder = files
        self._sources = dict(read_from)
        self.headers: Mapping[str, Header] = MappingProxyType(dict(headers))
        self.tensors: Mapping[str, SourceTensor] = MappingProxyType(
            {name: tensor for header in headers.values() for name, tensor in header.tensors.items()}
        )

    @property
    def files(self) -> tuple[CheckpointFile, ...]:
        """The index, if there is one, and every file with tensors."""
        return tuple(CheckpointFile(name, source.size) for name, source in self._sources.items())

    def source(self, file: str) -> ByteSource:
        """The open file called `file`, one of `files`. Raises: Usage."""
        if file not in self._sources:
            raise Usage(f"{file!r} is not a file of this checkpoint")
        return self._sources[file]

    def changed(self) -> str | None:
        """The first change among the files since they were opened, in words."""
        for name, source in self._sources.items():
            if what := source.changed():
                return f"{name}: {what}"
        return None

    def read_words(self, tensor: SourceTensor, begin: int, end: int, out: "Words | None" = None) -> "Words":
        """Words of the flat elements [begin, end) of `tensor` in C order, little-endian; reads only these bytes.

        `out`, if given, is a contiguous array of that many words of the dtype's word type, and is what returns.
        Raises: CutShort, CannotRead, Usage.
        """
        import numpy as np  # those who only list headers do without

        word = DTYPES[tensor.dtype].word
        if word is None:
            raise Usage(f"elements of {tensor.dtype} are not whole bytes and have no words")
        if not 0 <= begin <= end <= prod(tensor.shape):
            raise Usage(
                f"elements [{begin}, {end}) are outside tensor {tensor.name!r} of shape {list(tensor.shape)}"
            )
        words: Words = np.empty(end - begin, word) if out is None else out
        if words.shape != (end - begin,) or words.dtype != word or not words.flags.c_contiguous:
            raise Usage(f"the given array does not hold {end - begin} contiguous words of {tensor.dtype}")
        if end > begin:
            self.source(tensor.file).read_into(
                words.view(np.uint8).data, tensor.offset + begin * word.itemsize
            )
        return words


def detect(files: FileSet) -> Located:
    """The one checkpoint in a folder. Raises: Usage, when there is none or more than one."""
    indexes = [name for name in files.names if name.endswith(INDEX_SUFFIX)]
    singles = [name for name in files.names if name.endswith(SUFFIX)]
    if len(indexes) == 1 and indexes[0].removesuffix(".index.json") not in singles:
        return Located(Kind.INDEX, indexes[0])
    if not indexes and len(singles) == 1:
        return Located(Kind.FILE, singles[0])
    if not indexes and not singles:
        raise Usage(f"there is no {SUFFIX} file and no {INDEX_SUFFIX} file here")
    candidates = listed([*indexes, *singles])
    raise Usage(f"more than one checkpoint could be meant; name the file or the index: {candidates}")


def open_checkpoint(
    files: FileSet, kind: Kind, name: str, findings: Findings, limits: HeaderLimits | None = None
) -> Checkpoint | None:
    """The checkpoint whose file or index is `name`, or None after at least one error finding.

    The files stay open as long as `files`. Raises: CannotRead.
    """
    if name not in files:
        findings.add(
            "source.file_missing",
            f"There is no file {name}.",
            where={"file": name},
            expected=f"a {kind} checkpoint",
            found="no such file",
        )
        return None
    if kind is Kind.INDEX:
        index = read_index(files, name, findings, limits)
        if index is None:
            return None
        return Checkpoint(Located(kind, name), files, index.sources, index.headers)
    source = files.open(name)
    header = read_header(source, findings, limits)
    if header is None:
        return None
    return Checkpoint(Located(kind, name), files, {name: source}, {name: header})
