"""Cross checks: what must hold between the checkpoints of a recipe, or of one beyond the tensors that rules read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ninfer_core import strict_json
from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.documents.sets import Sets, read_each
from ninfer_core.documents.templates import assignments, combinations, fill
from ninfer_core.recipes.reading import read_dtype, read_role, sound_template
from ninfer_core.sources.dtypes import DTYPES
from ninfer_core.sources.json_text import json_path, listed
from ninfer_core.strict_json import Json

PrefixKind = Literal["nvfp4_matrix", "fp8_row_matrix", "compared"]

MAX_NAMES: Final = 1 << 20  # that all templates of one check may expand to
MAX_GLOBS: Final = 256  # of one check, each compared with every tensor that is not read
WEIGHT: Final = ".weight"  # what is cut off a compared name to make it a prefix
_PREFIXES: Final[Mapping[str, PrefixKind]] = {
    "nvfp4_matrix prefixes": "nvfp4_matrix",
    "fp8_row_matrix prefixes": "fp8_row_matrix",
    "prefixes compared by equal_source_tensors": "compared",
}
_GROUPS_BEGIN, _GROUPS_END = "the config_requires groups of the ", " source"


@dataclass(frozen=True, slots=True)
class EqualSourceTensors:
    """Tensors of these names hold the same words in both roles; `path` is the JSON path, as in every check."""

    path: str
    left: str
    right: str
    dtype: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClosedDtypes:
    """All tensors of these dtypes in the role are exactly those that rules read."""

    path: str
    role: str
    dtypes: tuple[str, ...]
    count: int | None


@dataclass(frozen=True, slots=True)
class AbsentSuffixes:
    """No prefix of the kind has a tensor with one of these suffixes."""

    path: str
    role: str
    of: PrefixKind
    suffixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EqualConfigs:
    """What `config_requires` of the role `groups_of` asks for has one value in the configs of both roles."""

    path: str
    left: str
    right: str
    groups_of: str


@dataclass(frozen=True, slots=True)
class UnusedSources:
    """Tensors, by glob, that are left out on purpose, and why."""

    path: str
    role: str
    globs: tuple[str, ...]
    reason: str


CrossCheck = EqualSourceTensors | ClosedDtypes | AbsentSuffixes | EqualConfigs | UnusedSources


class CrossCheckReader:
    """Reads the member `cross_checks` of a document with these roles and sets."""

    def __init__(self, faults: Faults, roles: Mapping[str, object], sets: Sets) -> None:
        self._faults, self._roles, self._sets = faults, roles, sets

    def read(self, fields: Fields) -> tuple[CrossCheck, ...]:
        """Every check in which everything fits; the rest are findings."""
        found = []
        for index, value in enumerate(fields.array("cross_checks") or []):
            path = (*fields.path("cross_checks"), index)
            kind = value.get("check") if isinstance(value, dict) else None
            members, optional, read = _KINDS.get(kind if isinstance(kind, str) else "", _UNKNOWN)
            if read is None and isinstance(value, dict):
                Fields(self._faults, value, path, ("check",), tuple(value)).choice("check", *_KINDS)
                continue
            check = Fields(self._faults, value, path, ("check", *members), optional)
            one = read(self, check) if read is not None else None
            if one is not None:
                found.append(one)
        return tuple(found)

    def equal_source_tensors(self, fields: Fields) -> EqualSourceTensors | None:
        """`equal_source_tensors`."""
        left, right = self._two_roles(fields)
        dtype, count = read_dtype(fields), fields.integer("count", 1)
        names = self._names(fields)
        if names is not None and count is not None and len(names) != count:
            message = f"{len(names):,} names where the check counts {count:,}."
            self._faults.add("count_differs", fields.path("count"), message, count, len(names))
        if names is not None and not names:
            fields.wrong_value("names", "at least one name")
            return None
        if left is None or right is None or dtype is None or names is None:
            return None
        return EqualSourceTensors(json_path(fields.at), left, right, dtype, names)

    def closed_dtypes(self, fields: Fields) -> ClosedDtypes | None:
        """`closed_dtypes`."""
        role, dtypes, count = self._role(fields, "from"), fields.texts("dtypes"), fields.integer("count")
        fields.text("meaning")
        if dtypes is not None and (unknown := [name for name in dtypes if name not in DTYPES]):
            fields.wrong_value("dtypes", f"dtypes of safetensors, not {', '.join(unknown)[:80]}")
            return None
        if dtypes is not None and not dtypes:
            fields.wrong_value("dtypes", "at least one dtype")
            return None
        if role is None or dtypes is None:
            return None
        return ClosedDtypes(json_path(fields.at), role, dtypes, count)

    def absent_source_suffixes(self, fields: Fields) -> AbsentSuffixes | None:
        """`absent_source_suffixes`."""
        role, of = self._role(fields, "from"), fields.choice("of", *_PREFIXES)
        suffixes = fields.texts("suffixes")
        if suffixes is not None and not suffixes:
            fields.wrong_value("suffixes", "at least one suffix")
            return None
        if role is None or of is None or suffixes is None:
            return None
        return AbsentSuffixes(json_path(fields.at), role, _PREFIXES[of], suffixes)

    def equal_configs(self, fields: Fields) -> EqualConfigs | None:
        """`equal_configs`."""
        left, right = self._two_roles(fields)
        members = fields.text("members")
        choices = {f"{_GROUPS_BEGIN}{role}{_GROUPS_END}": role for role in self._roles}
        if members is not None and members not in choices:
            fields.wrong_value("members", listed([repr(text) for text in choices]))
            return None
        if left is None or right is None or members is None:
            return None
        return EqualConfigs(json_path(fields.at), left, right, choices[members])

    def unused_sources(self, fields: Fields) -> UnusedSources | None:
        """`unused_sources`."""
        role, globs, reason = self._role(fields, "from"), fields.texts("names"), fields.text("meaning")
        if globs is not None and sum("*" in glob for glob in globs) > MAX_GLOBS:
            fields.wrong_value("names", f"at most {MAX_GLOBS} names with *")
            return None
        if role is None or globs is None or reason is None:
            return None
        return UnusedSources(json_path(fields.at), role, globs, reason)

    def _two_roles(self, fields: Fields) -> tuple[str | None, str | None]:
        left, right = self._role(fields, "left"), self._role(fields, "right")
        if left is not None and left == right:
            fields.wrong_value(
                "right", f"another role than {strict_json.show(left)}, which always equals itself"
            )
            return None, None
        return left, right

    def _role(self, fields: Fields, member: str) -> str | None:
        return read_role(fields, member, self._roles)

    def _names(self, fields: Fields) -> tuple[str, ...] | None:
        values = fields.array("names")
        if values is None:
            return None
        names: list[str] = []
        sound = True
        for index, value in enumerate(values):
            expanded = self._expanded(value, (*fields.path("names"), index), MAX_NAMES - len(names))
            sound = sound and expanded is not None
            names += expanded or ()
        return tuple(names) if sound else None

    def _expanded(self, value: Json, path: Path, room: int) -> tuple[str, ...] | None:
        fields = Fields(self._faults, value, path, ("name",), ("each",))
        name = fields.text("name")
        each, variables = read_each(fields, self._sets)
        if each is None:
            return None
        template = sound_template(self._faults, name, fields.path("name"), variables)
        if template is None:
            return None
        count = combinations(each, room)
        if count > room:
            message = f"at least {count:,} more names."
            self._faults.add("too_many_objects", path, message, f"{MAX_NAMES:,} in all", f"{count:,} more")
            return None
        return tuple(fill(template, values) for values in assignments(each))


_Read = Callable[[CrossCheckReader, Fields], CrossCheck | None]
_UNKNOWN: Final[tuple[tuple[str, ...], tuple[str, ...], _Read | None]] = ((), (), None)
_KINDS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...], _Read | None]]] = {
    "equal_source_tensors": (
        ("left", "right", "dtype", "names"),
        ("count",),
        CrossCheckReader.equal_source_tensors,
    ),
    "closed_dtypes": (("from", "dtypes"), ("meaning", "count"), CrossCheckReader.closed_dtypes),
    "absent_source_suffixes": (("from", "of", "suffixes"), (), CrossCheckReader.absent_source_suffixes),
    "equal_configs": (("left", "right", "members"), (), CrossCheckReader.equal_configs),
    "unused_sources": (("from", "names", "meaning"), (), CrossCheckReader.unused_sources),
}
