"""Cross checks of a bound recipe, as far as names, shapes and dtypes say (check catalogue E3)."""

from collections.abc import Iterator, Mapping
from typing import Final

from ninfer_core import strict_json
from ninfer_core.documents.templates import assignments, fill
from ninfer_core.findings import Findings
from ninfer_core.recipes.accounting import Accounting
from ninfer_core.recipes.bundles import BundleTree
from ninfer_core.recipes.crosschecks import (
    WEIGHT,
    AbsentSuffixes,
    ClosedDtypes,
    EqualSourceTensors,
    UnusedSources,
)
from ninfer_core.recipes.document import Recipe
from ninfer_core.recipes.names import compared_names
from ninfer_core.recipes.restrictions import matches
from ninfer_core.sources.checkpoint import Checkpoint
from ninfer_core.sources.json_text import listed, printable

_NAMED: Final = 16  # names that a finding about many of them lists


def check_cross(
    recipe: Recipe, checkpoints: Mapping[str, Checkpoint], accounting: Accounting, findings: Findings
) -> None:
    """What cross checks say of names, shapes and dtypes (E3); words of tensors are left to `preflight.source_tasks`."""
    for check in recipe.cross_checks:
        match check:
            case EqualSourceTensors():
                _check_pairs(check, checkpoints, findings)
            case ClosedDtypes() if check.role in checkpoints:
                _check_closed(check, checkpoints[check.role], accounting, findings)
            case AbsentSuffixes() if check.role in checkpoints:
                _check_absent(check, recipe, checkpoints[check.role], findings)
            case UnusedSources() if check.role in checkpoints:
                _mention_absent(check, checkpoints[check.role], findings)


def _check_pairs(
    check: EqualSourceTensors, checkpoints: Mapping[str, Checkpoint], findings: Findings
) -> None:
    for name in check.names:
        shapes = {}
        for role in (check.left, check.right):
            if role not in checkpoints:
                continue
            stored = checkpoints[role].tensors.get(name)
            if stored is None or stored.dtype != check.dtype:
                found = "no such tensor" if stored is None else stored.dtype
                findings.add(
                    "source.pair_missing",
                    f"{strict_json.show(name)} is to be compared between roles; of {role}: {found}.",
                    where={"role": role, "tensor": name, "check": check.path},
                    expected=check.dtype,
                    found=found,
                )
            else:
                shapes[role] = stored.shape
        if len(set(shapes.values())) > 1:
            findings.add(
                "source.tensors_differ",
                f"{strict_json.show(name)} has not the same shape in {check.left} and {check.right}.",
                where={"roles": [check.left, check.right], "tensor": name, "check": check.path},
                expected=list(shapes[check.left]),
                found=list(shapes[check.right]),
            )


def _check_closed(
    check: ClosedDtypes, checkpoint: Checkpoint, accounting: Accounting, findings: Findings
) -> None:
    uses = accounting[check.role]
    unread = [n for n, t in checkpoint.tensors.items() if t.dtype in check.dtypes and not uses[n].objects]
    if unread:
        dtypes = ", ".join(check.dtypes)
        message = f"{len(unread):,} tensors of {check.role} with a dtype among {dtypes} are not read"
        _add_names(
            findings, "source.dtypes_not_closed", check, message, unread, "every one of them read by a rule"
        )


def _check_absent(check: AbsentSuffixes, recipe: Recipe, checkpoint: Checkpoint, findings: Findings) -> None:
    there = [
        prefix + suffix
        for prefix in dict.fromkeys(_prefixes(check, recipe))
        for suffix in check.suffixes
        if prefix + suffix in checkpoint.tensors
    ]
    if there:
        message = f"{check.role} holds {len(there):,} tensors that the recipe rules out"
        _add_names(findings, "source.tensor_forbidden", check, message, there, "none of them")


def _mention_absent(check: UnusedSources, checkpoint: Checkpoint, findings: Findings) -> None:
    tensors = checkpoint.tensors
    absent = [
        glob
        for glob in dict.fromkeys(check.globs)
        if not (any(matches(glob, name) for name in tensors) if "*" in glob else glob in tensors)
    ]
    if absent:
        message = (
            f"{len(absent):,} of the names that the recipe leaves out of {check.role} stand for no tensor"
        )
        expected = "names of tensors of the checkpoint"
        _add_names(findings, "source.unused_absent", check, message, absent, expected, "names")


def _add_names(
    findings: Findings,
    code: str,
    check: ClosedDtypes | AbsentSuffixes | UnusedSources,
    message: str,
    names: list[str],
    expected: str,
    key: str = "tensors",
) -> None:
    """One finding for all names of a role that are not as the check has it; `key` is what `where` calls them."""
    findings.add(
        code,
        f"{message}: {listed(names)}.",
        where={"role": check.role, key: [printable(name) for name in names[:_NAMED]], "check": check.path},
        expected=expected,
        found=listed(names),
        count=len(names),
    )


def _prefixes(check: AbsentSuffixes, recipe: Recipe) -> Iterator[str]:
    if check.of == "compared":
        yield from (name.removesuffix(WEIGHT) for name in sorted(compared_names(recipe, check.role)))
        return
    kind = "nvfp4" if check.of == "nvfp4_matrix" else "fp8_row"
    for rule in recipe.rules:
        if isinstance(rule.value, BundleTree) and rule.value.kind == kind:
            parts = [part.prefix for part in rule.value.parts if part.role == check.role]
            for values in assignments(rule.each):
                yield from (fill(prefix, values) for prefix in parts)
