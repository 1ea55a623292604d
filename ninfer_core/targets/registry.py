"""The registered targets and recipes: data of this package, read when somebody asks and then kept."""

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Final, overload

from ninfer_core.findings import Findings
from ninfer_core.strict_json import parse
from ninfer_core.targets.document import LIMITS, parse_target
from ninfer_core.targets.target import Target

UNNAMED_WEIGHTS: Final = "groupwise-int"  # what a revision-1 file holds, which names only its model
_TARGET, _RECIPE = ".target.json", ".recipe.json"


class Registered(Sequence[Target]):
    """Every registered target, in the order of identities; nothing is read before the first one is asked for."""

    def __len__(self) -> int:
        return len(_names(_TARGET))

    def __iter__(self) -> Iterator[Target]:
        return (_target(name) for name in _names(_TARGET))

    @overload
    def __getitem__(self, index: int) -> Target: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Target, ...]: ...
    def __getitem__(self, index: int | slice) -> Target | tuple[Target, ...]:
        if isinstance(index, slice):
            return tuple(_target(name) for name in _names(_TARGET)[index])
        return _target(_names(_TARGET)[index])


TARGETS: Final = Registered()


def registered(model_id: str, weights_id: str | None) -> tuple[Target, ...]:
    """The registered targets of an identity: several when inventories differ, none when it is unknown.

    `weights_id` None stands for a file that names only its model.
    """
    wanted = (model_id, UNNAMED_WEIGHTS if weights_id is None else weights_id)
    return tuple(_target(name) for name in _names(_TARGET) if _identity(name) == wanted)


def is_registered(target: Target) -> bool:
    """Whether this very document is one of the registered ones."""
    return any(one.digest == target.digest for one in registered(target.model_id, target.weights_id))


def registered_recipe(recipe_id: str) -> bytes | None:
    """The document of a registered recipe."""
    name = _recipes().get(recipe_id)
    return None if name is None else _read(name)


def recipe_ids() -> tuple[str, ...]:
    """The registered recipes, in the order of their files."""
    return tuple(_recipes())


@cache
def _names(ending: str) -> tuple[str, ...]:
    folder = files("ninfer_core.targets") / "data"
    return tuple(sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(ending)))


def _read(name: str) -> bytes:
    return (files("ninfer_core.targets") / "data" / name).read_bytes()


@cache
def _target(name: str) -> Target:
    findings = Findings()
    target = parse_target(_read(name), findings, name)
    if target is None:
        raise RuntimeError(f"the packaged {name} is damaged: {findings.items[0].message}")
    return target


@cache
def _identity(name: str) -> tuple[str, str]:
    identity = parse(_read(name), LIMITS.depth)[0]["identity"]
    return identity["model_id"], identity["weights_id"]


@cache
def _recipes() -> dict[str, str]:
    return {parse(_read(name), LIMITS.depth)[0]["recipe_id"]: name for name in _names(_RECIPE)}
