"""What `--target` and `--recipe` mean: a file, a registered name, or `auto` for whatever the artifact says it is."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.errors import Usage
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, DiskFile, MemorySource
from ninfer_core.opening import Opened
from ninfer_core.targets import (
    TARGETS,
    Target,
    choose,
    load_target,
    recipe_ids,
    registered,
    registered_recipe,
)

AUTO: Final = "auto"


@dataclass(frozen=True, slots=True)
class Targets:
    """Candidates; with `auto` the artifact picks, else all are of the one identity that was named."""

    candidates: Sequence[Target]
    auto: bool


def targets(option: str) -> Targets:
    """The target of `--target`. Raises: Usage, CannotRead."""
    if option == AUTO:
        return Targets(TARGETS, True)
    model_id, separator, weights_id = option.rpartition("/")
    named = registered(model_id, weights_id) if separator else ()
    if named:
        return Targets(named, False)
    if not Path(option).exists():
        known = ", ".join(target.identity for target in TARGETS)
        raise Usage(f"{option!r} is no file and no registered target; registered are {known}")
    return Targets((_document(Path(option)),), False)


def _document(path: Path) -> Target:
    findings = Findings()
    with ExitStack() as stack:
        source = DiskFile(path)
        stack.callback(source.close)
        target = load_target(source, findings)
    if target is None:
        first = findings.errors[0].message
        raise Usage(
            f"the target {path} is at fault: {first} (ninfer-gate targets check {path} lists everything)"
        )
    return target


def recipe(stack: ExitStack, option: str, opened: Opened) -> ByteSource | None:
    """The document of `--recipe` for an artifact, closed by `stack`; None where `auto` finds none for it.

    Raises: Usage, CannotRead.
    """
    return _registered_for(opened) if option == AUTO else named_recipe(stack, option)


def named_recipe(stack: ExitStack, option: str) -> ByteSource:
    """The document in a file or of a registered recipe, closed by `stack`. Raises: Usage, CannotRead."""
    if not Path(option).exists():
        text = registered_recipe(option)
        if text is not None:
            return MemorySource(option, text)
        if "/" not in option and not option.endswith(".json"):
            known = ", ".join(recipe_ids())
            raise Usage(f"{option!r} is no file and no registered recipe; registered are {known}")
    source = DiskFile(Path(option))
    stack.callback(source.close)
    return source


def _registered_for(opened: Opened) -> ByteSource | None:
    if opened.kind != "ninfer":
        raise Usage(f"--recipe {AUTO} needs a .ninfer artifact, whose identity names the recipe")
    artifact = read_artifact(opened.files, opened.entry, Findings())
    target = None if artifact is None else choose(TARGETS, artifact).target
    text = None if target is None or target.recipe_id is None else registered_recipe(target.recipe_id)
    return None if text is None or target is None else MemorySource(str(target.recipe_id), text)
