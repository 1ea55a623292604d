"""The files of a new artifact while they are being filled."""

from pathlib import Path
from typing import Protocol

from ninfer_core.containers.publish import NewFile
from ninfer_core.containers.writer import ARTIFACT_ID_OFFSET, Blueprint
from ninfer_core.io import Joined


class Sink(Protocol):
    """What a conversion writes to; any thread may."""

    def write(self, content: memoryview, offset: int) -> None:
        """All of `content` at an offset of the logical payload. Raises: CannotWrite."""
        ...


class Output:
    """The new files as one writable logical payload, and as the `FileSet` they will be."""

    def __init__(self, draft: Blueprint, out: Path) -> None:
        self.draft = draft
        self.files: list[NewFile] = []
        try:
            for file in draft.files:
                self.files.append(NewFile(out.with_name(file.name), file.bytes))
        except BaseException:
            self.__exit__()
            raise
        self.payload = Joined(
            out.name,
            [
                (new, spec.payload_offset, spec.payload_bytes)
                for new, spec in zip(self.files, draft.files, strict=True)
            ],
        )

    def __enter__(self) -> "Output":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files:
            file.close()

    @property
    def names(self) -> tuple[str, ...]:
        """The entry first."""
        return tuple(file.name for file in self.files)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def open(self, name: str) -> NewFile:
        """See `FileSet.open`."""
        return self.files[self.names.index(name)]

    def write(self, content: memoryview, offset: int) -> None:
        """Write at an offset of the logical payload; a range may straddle files. Raises: CannotWrite."""
        end = offset + len(content)
        for new, spec in zip(self.files, self.draft.files, strict=True):
            low, high = max(offset, spec.payload_begin), min(end, spec.payload_begin + spec.payload_bytes)
            if low < high:
                new.write(
                    content[low - offset : high - offset], spec.payload_offset + low - spec.payload_begin
                )

    def write_headers(self, artifact_id: bytes) -> None:
        """The headers, with the id in place where the revision has one."""
        for new, spec in zip(self.files, self.draft.files, strict=True):
            new.write(spec.header, 0)
            if self.draft.revision == 3:
                new.write(artifact_id, ARTIFACT_ID_OFFSET)
