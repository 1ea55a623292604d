"""From options to a bound plan: roles, inputs and the recipe, with every fault of theirs as a finding."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ninfer_core.errors import CannotRead, CutShort, Usage
from ninfer_core.file_findings import report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, DiskFile, DiskFiles
from ninfer_core.recipes import Plan, Recipe, bind, load_recipe
from ninfer_core.sources.checkpoint import INDEX_SUFFIX
from ninfer_core.targets import Target
from ninfer_core.verify.against import NO_SOURCE, UNBOUND
from service.cli.choosing import targets
from service.cli.output import not_empty

DEFAULT_ROLE = "base"


@dataclass(frozen=True, slots=True)
class Bound:
    """The plan, or None with the findings that say why there is none; `recipe` is the document alone."""

    plan: Plan | None
    findings: Findings
    reason: str = UNBOUND
    recipe: Recipe | None = None


def roles(values: Sequence[str]) -> dict[str, Path]:
    """Folders by role from `[ROLE=]DIR` values; what stands before `=` is a role unless it holds a slash.

    Raises: Usage.
    """
    found: dict[str, Path] = {}
    for value in values:
        role, separator, folder = value.partition("=")
        if not separator or os.sep in role:
            role, folder = DEFAULT_ROLE, value
        if not role or not folder:
            raise Usage(f"{value!r} is not [ROLE=]DIR")
        if role in found:
            raise Usage(f"the role {role!r} is given twice: {found[role]} and {folder}")
        found[role] = Path(folder)
    return found


def named_files(values: Sequence[str]) -> dict[str, Path]:
    """Files by name from `NAME=FILE` values. Raises: Usage."""
    found: dict[str, Path] = {}
    for value in values:
        name, separator, file = value.partition("=")
        if not separator or not name or not file:
            raise Usage(f"{value!r} is not NAME=FILE")
        if name in found:
            raise Usage(f"the input {name!r} is given twice: {found[name]} and {file}")
        found[name] = Path(file)
    return found


def require_there(paths: Iterable[Path]) -> None:
    """Raises: CannotRead for a path that leads nowhere."""
    for path in paths:
        try:
            os.stat(path)
        except OSError as error:
            raise CannotRead(f"cannot open {path}: {error.strerror}") from error


def bound(
    stack: ExitStack,
    document: ByteSource,
    folders: Mapping[str, Path],
    inputs: Mapping[str, Path],
    target: Target | None = None,
) -> Bound:
    """The recipe put together with its checkpoints, or read alone where none is given; `stack` closes the files.

    Raises: CannotRead for a path that cannot be read, Usage for a file where a folder is meant.
    """
    findings = Findings()
    opened_inputs = {}
    for name, path in inputs.items():
        opened_inputs[name] = DiskFile(path)
        stack.callback(opened_inputs[name].close)
    files = {role: stack.enter_context(_folder(path)) for role, path in folders.items()}
    recipe = load_recipe(document, findings, target=target)
    if recipe is None:
        return Bound(None, findings, "the recipe is at fault")
    if not folders and not inputs:
        return Bound(None, findings, NO_SOURCE, recipe)
    _require_names("role", "--source or --checkpoint", recipe.sources, folders)
    _require_names("input", "--input", recipe.inputs, inputs)
    _require_named_files(recipe, folders)
    try:
        return Bound(bind(recipe, files, opened_inputs, findings), findings, recipe=recipe)
    except CutShort as cut:
        report_cut_short(cut, findings, about="source")
        return Bound(None, findings, recipe=recipe)


def chosen_target(option: str | None) -> Target | None:
    """The one target of `--target`; None without the option. Raises: Usage, CannotRead."""
    if option is None:
        return None
    named = targets(not_empty("--target", option))
    if named.auto:
        raise Usage("--target auto picks by an artifact; name the target of the recipe, or a file")
    if len(named.candidates) != 1:
        raise Usage(f"there are {len(named.candidates)} targets {option!r}; give the file of one")
    return named.candidates[0]


def _folder(path: Path) -> DiskFiles:
    if not path.is_file():
        return DiskFiles(path)
    DiskFile(path).close()  # says why when it may not be read
    return DiskFiles(path.parent)


def _require_names(what: str, option: str, named: Iterable[str], given: Iterable[str]) -> None:
    # A slip on the command line is no answer about the artifact.
    named, given = list(named), list(given)
    unknown = [name for name in given if name not in named]
    missing = [name for name in named if name not in given]
    if unknown:
        raise Usage(
            f"the recipe has no {what} {unknown[0]!r}; it reads {', '.join(map(repr, named)) or 'none'}"
        )
    if missing:
        raise Usage(f"the recipe reads the {what} {missing[0]!r}; give it with {option} {missing[0]}=PATH")


def _require_named_files(recipe: Recipe, folders: Mapping[str, Path]) -> None:
    for role, path in folders.items():
        source = recipe.sources.get(role)
        if source is None or not path.is_file():
            continue
        if path.name != source.file:
            what = "index" if source.file.endswith(INDEX_SUFFIX) else "file"
            raise Usage(
                f"the recipe reads the {what} {source.file!r} for the role {role!r}, not {path.name!r}"
            )
