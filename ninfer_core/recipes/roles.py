"""The checkpoints of a recipe's roles: given under the right names, opened, and of the stated form."""

from collections.abc import Iterable, Mapping

from ninfer_core import strict_json
from ninfer_core.findings import Findings
from ninfer_core.io import FileSet
from ninfer_core.recipes.document import Recipe
from ninfer_core.recipes.sources import Source
from ninfer_core.sources.checkpoint import SUFFIX, Checkpoint, Kind, open_checkpoint
from ninfer_core.sources.json_text import listed, printable


def open_roles(
    recipe: Recipe,
    given: Mapping[str, Checkpoint | FileSet],
    folders: Mapping[str, FileSet],
    findings: Findings,
) -> dict[str, Checkpoint]:
    """The checkpoint of each role that could be opened, out of `folders` where it was not yet. Raises: CannotRead."""
    compare_names(recipe.sources, given, "role", findings)
    opened = {}
    for role, source in recipe.sources.items():
        if role not in given:
            continue
        what = given[role]
        if isinstance(what, Checkpoint):
            checkpoint: Checkpoint | None = what
            if (what.kind, what.name) != (source.kind, source.file):
                findings.add(
                    "source.file_missing",
                    f"The recipe reads {source.file} of {role}, the checkpoint was opened from {what.name}.",
                    where={"role": role, "file": source.file},
                    expected=f"{source.kind} {source.file}",
                    found=f"{what.kind} {what.name}",
                )
                continue
        else:
            checkpoint = open_checkpoint(folders[role], source.kind, source.file, findings)
        if checkpoint is not None:
            _compare_shards(source, checkpoint, findings)
            opened[role] = checkpoint
    return opened


def compare_names(named: Iterable[str], given: Iterable[str], what: str, findings: Findings) -> None:
    """Findings `recipe.<what>_missing` and `recipe.<what>_unknown` for names that do not pair up."""
    named, given = list(named), list(given)
    for name in named:
        if name not in given:
            findings.add(
                f"recipe.{what}_missing",
                f"The recipe reads the {what} {strict_json.show(name)}, which was not given.",
                where={what: name},
                expected=name,
                found=listed(given),
            )
    for name in given:
        if name not in named:
            findings.add(
                f"recipe.{what}_unknown",
                f"The recipe has no {what} {strict_json.show(name)}.",
                where={what: printable(name)},
                expected=listed(named),
                found=strict_json.show(name),
            )


def _compare_shards(source: Source, checkpoint: Checkpoint, findings: Findings) -> None:
    if source.kind is not Kind.INDEX:
        return
    shards = len(checkpoint.headers)
    if source.shards is not None and shards != source.shards:
        findings.add(
            "source.shard_count",
            f"{source.file} names {shards} shards, the recipe states {source.shards}.",
            where={"role": source.role, "file": source.file},
            expected=source.shards,
            found=shards,
        )
    strangers = [n for n in checkpoint.folder.names if n.endswith(SUFFIX) and n not in checkpoint.headers]
    if source.shard_set_equals_index and strangers:
        findings.add(
            "source.shard_unexpected",
            f"{len(strangers)} safetensors files of {source.role} are not named by {source.file}.",
            where={"role": source.role, "files": [printable(name) for name in strangers]},
            expected="the shards of the index only",
            found=listed(strangers),
            count=len(strangers),
        )
