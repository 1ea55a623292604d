"""The files of a role that were read: opened once, and held to what they were when everything is done."""

from collections.abc import Mapping
from types import MappingProxyType

from ninfer_core.io import ByteSource, FileSet
from ninfer_core.sources.checkpoint import Checkpoint


class ReadFiles:
    """A folder that remembers what was opened of it (a `FileSet`); a name is opened once, so all read the same bytes."""

    def __init__(self, files: FileSet, opened: Mapping[str, ByteSource] | None = None) -> None:
        """`opened` are files of it that are open already."""
        self._files = files
        self._opened = dict(opened or {})

    @classmethod
    def of(cls, given: Checkpoint | FileSet) -> "ReadFiles":
        """The folder of a role, however it was given."""
        if isinstance(given, Checkpoint):
            return cls(given.folder, {file.name: given.source(file.name) for file in given.files})
        return cls(given)

    @property
    def names(self) -> tuple[str, ...]:
        """See `FileSet.names`."""
        return self._files.names

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def open(self, name: str) -> ByteSource:
        """See `FileSet.open`. Raises: CannotRead."""
        if name not in self._opened:
            self._opened[name] = self._files.open(name)
        return self._opened[name]

    @property
    def opened(self) -> Mapping[str, ByteSource]:
        """Every file that was read, by name in alphabetical order."""
        return MappingProxyType(dict(sorted(self._opened.items())))
