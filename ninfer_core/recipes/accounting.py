"""What became of every source tensor: used, and by which objects; left out, and why; or not accounted for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ninfer_core.recipes.crosschecks import CrossCheck, EqualSourceTensors, UnusedSources
from ninfer_core.recipes.restrictions import matches
from ninfer_core.sources.checkpoint import Checkpoint

UseState = Literal["used", "excluded", "unaccounted"]


@dataclass(frozen=True, slots=True)
class Use:
    """One source tensor: the objects that read it, else the reason why none does, None where nobody gave one."""

    objects: tuple[str, ...]
    reason: str | None = None

    @property
    def state(self) -> UseState:
        """In one word."""
        if self.objects:
            return "used"
        return "unaccounted" if self.reason is None else "excluded"


Accounting = Mapping[str, Mapping[str, Use]]  # role, source tensor


def account(
    cross_checks: Sequence[CrossCheck],
    checkpoints: Mapping[str, Checkpoint],
    readers: Mapping[str, Mapping[str, Sequence[str]]],
) -> Accounting:
    """Every tensor of every checkpoint; `readers` are the objects that read one, by role and tensor."""
    accounting = {}
    for role, checkpoint in checkpoints.items():
        excuses = _Excuses(role, cross_checks)
        accounting[role] = MappingProxyType(
            {
                name: Use(tuple(readers[role][name]))
                if name in readers[role]
                else Use((), excuses.reason(name))
                for name in checkpoint.tensors
            }
        )
    return MappingProxyType(accounting)


class _Excuses:
    """Why tensors of one role may go unread."""

    def __init__(self, role: str, cross_checks: Iterable[CrossCheck]) -> None:
        self._named: dict[str, str] = {}
        self._globs: list[tuple[str, str]] = []
        for check in cross_checks:
            if isinstance(check, EqualSourceTensors) and role in (check.left, check.right):
                other = check.right if role == check.left else check.left
                self._named |= dict.fromkeys(check.names, f"compared with the same tensor of {other}")
            elif isinstance(check, UnusedSources) and check.role == role:
                for glob in check.globs:
                    if "*" in glob:
                        self._globs.append((glob, check.reason))
                    else:
                        self._named.setdefault(glob, check.reason)

    def reason(self, name: str) -> str | None:
        """The first reason that is given."""
        if name in self._named:
            return self._named[name]
        return next((reason for glob, reason in self._globs if matches(glob, name)), None)


def unused_sources(accounting: Accounting) -> dict[str, list[str]]:
    """By role, the source tensors that no object reads, excused or not."""
    return {
        role: [name for name, use in uses.items() if not use.objects] for role, uses in accounting.items()
    }


def accounting_json(accounting: Accounting) -> dict[str, dict[str, object]]:
    """Strict JSON values: by role the counts, and every tensor that is not simply used, with the reason if any.

    Source tensors that more than one object reads are listed under `shared`.
    """
    return {role: _role_json(uses) for role, uses in accounting.items()}


def _role_json(uses: Mapping[str, Use]) -> dict[str, object]:
    states = {state: [name for name, use in uses.items() if use.state == state] for state in _STATES}
    return {
        "total": len(uses),
        **{state: len(names) for state, names in states.items()},
        "shared": {name: list(use.objects) for name, use in uses.items() if len(use.objects) > 1},
        "excluded_tensors": {name: uses[name].reason for name in states["excluded"]},
        "unaccounted_tensors": states["unaccounted"],
    }


_STATES: tuple[UseState, ...] = ("used", "excluded", "unaccounted")
