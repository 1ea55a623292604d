"""What can happen to any file while it is in use, as findings: the one place that words it."""

from collections.abc import Iterable

from ninfer_core.errors import CutShort
from ninfer_core.findings import About, Findings
from ninfer_core.io import ByteSource


def report_cut_short(
    error: CutShort,
    findings: Findings,
    name: str | None = None,
    ordinal: int | None = None,
    about: About = "artifact",
) -> None:
    """A file that ended while it was read: an answer about the file, not a failure of ours."""
    found = Findings()
    found.add(
        "structure.file_cut_short",
        str(error),
        object=name,
        where={"file": error.name, "offset": error.offset},
        expected=f"{error.wanted} bytes",
        found=f"{error.got} bytes",
        ordinal=ordinal,
    )
    if about != "artifact":
        found.blame(about)
    findings.extend(found)


def report_changes(sources: Iterable[ByteSource], findings: Findings) -> None:
    """A finding for every file of the artifact that was written to since it was opened."""
    for source in sources:
        if what := source.changed():
            findings.add(
                "structure.file_changed",
                f"{source.name}: {what}",
                where={"file": source.name},
                expected="no change",
                found=what,
            )
