"""JSON documents that lie beside weights, read with a limit; what is wrong with them becomes findings."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import islice

from ninfer_core import strict_json
from ninfer_core.errors import CutShort
from ninfer_core.file_findings import report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, read
from ninfer_core.sources.pointer import HEAD_BYTES, pointer_stub
from ninfer_core.strict_json import Malformed, Members, Problem


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """How large and how deep a document may be."""

    bytes: int
    depth: int


def json_path(path: Iterable[str | int]) -> str:
    """A place in a document: `$.rules[3].value`, with quotes around names that are no identifiers."""
    text = "$"
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.isidentifier() and step.isascii():
            text += f".{step}"
        else:
            text += f"[{strict_json.show(step)}]"
    return text


def parse_object(
    text: bytes, depth: int, file: str, findings: Findings, root_key: str | None = None
) -> Members | None:
    """The object that `text` spells, or None after findings `structure.json_*`; some findings leave a value.

    `root_key` says what the members of the root are, as a key of `where`: `tensor` in a header.
    """
    try:
        value, problems = strict_json.parse(text, depth)
    except Malformed as malformed:
        _add(findings, file, malformed.problem, root_key)
        return None
    for problem in problems:
        _add(findings, file, problem, root_key)
    if any(problem.kind == "json_surrogate" for problem in problems):
        return None  # past this line every string can stand in a report
    if isinstance(value, Members):
        return value
    findings.add(
        "structure.json_root",
        f"{file}: the JSON text is not an object.",
        where={"file": file, "path": "$"},
        expected="an object",
        found=strict_json.type_name(value),
    )
    return None


def read_object(source: ByteSource, limits: JsonLimits, findings: Findings) -> Members | None:
    """`parse_object` of a whole file. Raises: CannotRead."""
    if source.size > limits.bytes:
        findings.add(
            "structure.json_too_large",
            f"{source.name} is too large for a JSON document.",
            where={"file": source.name, "bytes": source.size, "limit": limits.bytes},
            expected=f"at most {limits.bytes:,} bytes",
            found=f"{source.size:,} bytes",
        )
        return None
    try:
        text = read(source, 0, source.size)
    except CutShort as cut:
        report_cut_short(cut, findings)
        return None
    if add_pointer(findings, source.name, text[:HEAD_BYTES]):
        return None
    return parse_object(text, limits.depth, source.name, findings)


def printable(name: str) -> str:
    """A name that a report can hold: itself, or an ASCII spelling when it is no Unicode text."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return ascii(name)
    return name


def listed(names: Collection[str], most: int = 8) -> str:
    """The first few of many names in a message, each cut where it is long."""
    first = ", ".join(printable(name)[:80] for name in islice(names, most))
    return f"{first} and {len(names) - most} more" if len(names) > most else first or "none"


def add_pointer(findings: Findings, file: str, head: bytes, name: str | None = None) -> bool:
    """Whether `head` is pointer text, which is then a finding about object `name` (None: the file)."""
    stub = pointer_stub(head)
    if stub is None:
        return False
    findings.add(
        "structure.pointer_stub",
        f"{file} is the text of a large-file pointer; the real file was not fetched.",
        object=name,
        where={"file": file, **stub.where},
        expected="the file itself",
        found="pointer text" + (f" for a file of {stub.bytes:,} bytes" if stub.bytes is not None else ""),
    )
    return True


def _add(findings: Findings, file: str, problem: Problem, root_key: str | None) -> None:
    path = json_path(problem.path)
    message = f"{file}: {problem.found}"
    if problem.kind == "json_member_duplicate":
        message = f"{file}: one object holds the member {strict_json.show(problem.found)} twice, at {path}."
    where: dict[str, object] = {"file": file, "path": path}
    owner = None
    if problem.path:
        where["member"] = printable(str(problem.path[-1]))
        if root_key is not None:
            owner = where[root_key] = printable(str(problem.path[0]))
    findings.add(
        f"structure.{problem.kind}", message, object=owner, where=where, found=strict_json.show(problem.found)
    )
