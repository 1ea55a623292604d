"""What rules and cross checks of one document say of the same source tensors, without any checkpoint."""

from collections.abc import Mapping, Sequence
from math import prod

from ninfer_core import strict_json
from ninfer_core.documents.fields import Faults
from ninfer_core.documents.templates import assignments, fill
from ninfer_core.recipes.claims import MAX_MATCHES
from ninfer_core.recipes.crosschecks import ClosedDtypes, CrossCheck, EqualConfigs, UnusedSources
from ninfer_core.recipes.nodes import Tensor
from ninfer_core.recipes.restrictions import matches
from ninfer_core.recipes.rules import Rule
from ninfer_core.recipes.sources import Source
from ninfer_core.sources.json_text import listed

_Read = dict[str, dict[str, tuple[Tensor, int]]]  # role, tensor: how it is read, and by which rule first


def check_reading(
    faults: Faults, sources: Mapping[str, Source | None], checks: Sequence[CrossCheck], rules: Sequence[Rule]
) -> None:
    """Findings for tensors that rules read as different things, and for cross checks that no rule can meet or fail."""
    read = _read(faults, rules)
    for index, check in enumerate(checks):
        match check:
            case ClosedDtypes():
                _compare_count(faults, index, check, read)
            case UnusedSources():
                _refuse_read(faults, index, check, read)
            case EqualConfigs():
                source = sources.get(check.groups_of)
                if source is not None and not any(source.config.requires.values()):
                    message = f"{check.groups_of} requires nothing of its config, so nothing is compared."
                    path = ("cross_checks", index, "members")
                    faults.add(
                        "value_invalid", path, message, "a source with config_requires", check.groups_of
                    )
            case _:
                pass


def _read(faults: Faults, rules: Sequence[Rule]) -> _Read:
    read: _Read = {}
    told: set[tuple[str, str, int]] = set()
    for number, rule in enumerate(rules):
        leaves = tuple(dict.fromkeys(rule.leaves))
        for values in assignments(rule.each):
            for leaf in leaves:
                name = fill(leaf.name, values)
                first, by = read.setdefault(leaf.role, {}).setdefault(name, (leaf, number))
                if _agree(first, leaf) or (leaf.role, name, number) in told:
                    continue
                told.add((leaf.role, name, number))
                shown = f"{strict_json.show(name)} of {leaf.role}"
                found, expected = (f"{one.dtype} {list(one.shape)}" for one in (leaf, first))
                faults.add(
                    "source_contradiction",
                    ("rules", number),
                    f"{shown} is read as {found} here and as {expected} by {rules[by].path}.",
                    expected,
                    found,
                    role=leaf.role,
                    tensor=name,
                    other=rules[by].path,
                )
    return read


def _agree(first: Tensor, other: Tensor) -> bool:
    """Whether one tensor can be both; a single word may be of shape [] or [1] where one reader does not mind."""
    one_word = (first.scalar or other.scalar) and prod(first.shape) == prod(other.shape) == 1
    return first.dtype == other.dtype and (first.shape == other.shape or one_word)


def _compare_count(faults: Faults, index: int, check: ClosedDtypes, read: _Read) -> None:
    if check.count is None:
        return
    count = sum(leaf.dtype in check.dtypes for leaf, _ in read.get(check.role, {}).values())
    if count != check.count:
        message = f"rules read {count:,} tensors of these dtypes, the check counts {check.count:,}."
        faults.add("count_differs", ("cross_checks", index, "count"), message, check.count, count)


def _refuse_read(faults: Faults, index: int, check: UnusedSources, read: _Read) -> None:
    names = read.get(check.role, {})
    globs = [glob for glob in check.globs if "*" in glob]
    path = ("cross_checks", index, "names")
    if len(globs) * len(names) > MAX_MATCHES:
        message = f"{len(globs):,} names with * of {len(names):,} tensors that rules read."
        expected = f"at most {MAX_MATCHES:,} comparisons"
        faults.add("too_many_objects", path, message, expected, f"{len(globs) * len(names):,}")
        return
    used = [name for name in dict.fromkeys(check.globs) if name in names]
    used += [name for name in names if any(matches(glob, name) for glob in globs)]
    if used:
        message = f"{len(used):,} of the tensors that are said to be left out are read by rules."
        faults.add("unused_source_read", path, message, "tensors that no rule reads", listed(used), used)
