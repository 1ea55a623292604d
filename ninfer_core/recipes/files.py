"""The files that a recipe copies, found and compared with what it pins."""

from collections.abc import Mapping

from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, FileSet, read, sha256
from ninfer_core.recipes.document import Recipe
from ninfer_core.recipes.inputs import Input, Pin
from ninfer_core.recipes.sources import Resource
from ninfer_core.sources.json_text import add_pointer
from ninfer_core.sources.pointer import HEAD_BYTES


def open_files(
    recipe: Recipe, folders: Mapping[str, FileSet], inputs: Mapping[str, ByteSource], findings: Findings
) -> dict[str, ByteSource]:
    """The source of each resource by its path in the recipe, where it can be found at all.

    Pinned inputs are compared whether a resource reads them or not. Raises: CutShort, CannotRead.
    """
    for name, wanted in recipe.inputs.items():
        if name in inputs:
            where: dict[str, object] = {"input": name, "file": inputs[name].name}
            if _has_its_rows(inputs[name], wanted, findings):
                check_pin(inputs[name], wanted.pin, where, None, findings)
    found: dict[str, ByteSource] = {}
    for resource in recipe.resources:
        source = _open(resource, folders, inputs, findings)
        if source is None:
            continue
        found[resource.path] = source
        name, where = resource.object, _where(resource)
        if source.size == 0:
            findings.add(
                "source.file_empty",
                f"{source.name} is empty, and {name} needs at least one byte.",
                object=name,
                where=where,
                expected="at least 1 byte",
                found="0 bytes",
            )
        elif not add_pointer(findings, source.name, read(source, 0, min(source.size, HEAD_BYTES)), name):
            check_pin(source, resource.pin, where, name, findings)
    return found


def check_pin(
    source: ByteSource, pin: Pin, where: Mapping[str, object], name: str | None, findings: Findings
) -> None:
    """Findings where `source` is not what `pin` says. Raises: CutShort, CannotRead."""
    if pin.bytes is not None and source.size != pin.bytes:
        # No need to read it: a file of another size has another digest.
        findings.add(
            "source.file_size_mismatch",
            f"{source.name} has {source.size:,} bytes, the recipe pins {pin.bytes:,}.",
            object=name,
            where=where,
            expected=f"{pin.bytes:,} bytes",
            found=f"{source.size:,} bytes",
        )
    elif pin.sha256 is not None and (digest := sha256(source)) != pin.sha256:
        findings.add(
            "source.file_digest_mismatch",
            f"{source.name} is not the file that the recipe pins.",
            object=name,
            where=where,
            expected=pin.sha256,
            found=digest,
        )


def _has_its_rows(source: ByteSource, wanted: Input, findings: Findings) -> bool:
    """Whether a ranking is as large as its rows; a pinned size is the same, and is compared with the pin."""
    ranking = wanted.ranking
    if ranking is None or wanted.pin.bytes is not None or source.size == ranking.bytes:
        return True
    findings.add(
        "source.file_size_mismatch",
        f"{source.name} has {source.size:,} bytes, {ranking.rows} rows of {ranking.row_width:,} counts take {ranking.bytes:,}.",
        where={"input": wanted.name, "file": source.name},
        expected=f"{ranking.bytes:,} bytes",
        found=f"{source.size:,} bytes",
    )
    return False


def _where(resource: Resource) -> dict[str, object]:
    place: dict[str, object] = {"rule": resource.path}
    if resource.input is not None:
        return {"input": resource.input, **place}
    return {"role": resource.role, "file": resource.file, **place}


def _open(
    resource: Resource, folders: Mapping[str, FileSet], inputs: Mapping[str, ByteSource], findings: Findings
) -> ByteSource | None:
    if resource.input is not None:
        return inputs.get(resource.input)  # absent: already a finding about the input
    if resource.role is None or resource.file is None or resource.role not in folders:
        return None  # absent: already a finding about the role
    folder = folders[resource.role]
    if resource.file in folder:
        return folder.open(resource.file)
    findings.add(
        "source.file_missing",
        f"{resource.object} is a copy of {resource.file}, which {resource.role} does not hold.",
        object=resource.object,
        where=_where(resource),
        expected=resource.file,
        found="no such file",
    )
    return None
