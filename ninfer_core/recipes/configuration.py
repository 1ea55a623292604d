"""`config.json` and side files of every role against what a recipe demands of them (check catalogue E1, E3)."""

from collections.abc import Mapping
from typing import Any, Final

from ninfer_core import strict_json
from ninfer_core.findings import Findings
from ninfer_core.io import FileSet
from ninfer_core.recipes.configs import CONFIG, EXACT_MEMBERS, ConfigRules, at_path, same_value
from ninfer_core.recipes.crosschecks import EqualConfigs
from ninfer_core.recipes.document import Recipe
from ninfer_core.sources.json_text import JsonLimits, printable, read_object
from ninfer_core.strict_json import Members

LIMITS: Final = JsonLimits(16 << 20, 64)

_NOTHING: Final = "nothing"


def check_configs(recipe: Recipe, folders: Mapping[str, FileSet], findings: Findings) -> None:
    """`config.json` and side files of every role against what the recipe demands (E1). Raises: CannotRead."""
    equal = [check for check in recipe.cross_checks if isinstance(check, EqualConfigs)]
    compared = {role for check in equal for role in (check.left, check.right)}
    configs: dict[str, Members] = {}
    for role, files in folders.items():
        rules = recipe.sources[role].config
        if rules.need_config or role in compared:
            config = _read(role, files, CONFIG, findings)
            if config is not None:
                configs[role] = config
                _Config(role, CONFIG, config, findings).check(rules)
        for side in rules.side_files:
            members = _read(role, files, side.file, findings)
            if members is not None:
                _Config(role, side.file, members, findings).require("", side.members)
    for check in equal:
        if check.left in configs and check.right in configs:
            _compare_configs(check, recipe, configs, findings)


def _read(role: str, files: FileSet, name: str, findings: Findings) -> Members | None:
    if name not in files:
        findings.add(
            "source.file_missing",
            f"The recipe says what {name} of {role} must hold, and there is no such file.",
            where={"role": role, "file": name},
            expected=name,
            found="no such file",
        )
        return None
    return read_object(files.open(name), LIMITS, findings)


class _Config:
    """One JSON file of a role; every member that is not as demanded is a finding of its own."""

    def __init__(self, role: str, file: str, root: Members, findings: Findings) -> None:
        self._role, self._file, self._root, self._findings = role, file, root, findings

    def check(self, rules: ConfigRules) -> None:
        """Everything that the rules say of the config."""
        for group, members in rules.requires.items():
            self.require(group, members)
        for path in rules.absent:
            there, value = at_path(self._root, path)
            if there:
                self._add(path, f"{path} may not be there.", _NOTHING, value)
        if rules.layer_types is not None:
            self._check_layers(rules)

    def require(self, group: str, members: Mapping[str, Any]) -> None:
        """The object at `group` has these members; others are free unless the recipe lists the exact ones."""
        there, value = at_path(self._root, group)
        if not there or not isinstance(value, Members):
            self._add(group, f"there is no object {group}.", "an object", value if there else _NOTHING)
            return
        for name, wanted in members.items():
            if name == EXACT_MEMBERS:
                if list(value) != wanted:
                    message = f"{group or 'the root'} has not just these members in this order."
                    self._add(group, message, strict_json.show(wanted), list(value))
                continue
            shown = strict_json.show(dict(wanted) if isinstance(wanted, Members) else wanted)
            place = f"{group}.{name}" if group else name
            if name not in value:
                self._add(place, f"there is no {place}.", shown, _NOTHING)
            elif not same_value(value[name], wanted):
                message = f"{place} is not what the recipe demands."
                self._add(place, message, shown, value[name])

    def _check_layers(self, rules: ConfigRules) -> None:
        layers = rules.layer_types
        if layers is None:
            return
        there, value = at_path(self._root, layers.member)
        if not there or not isinstance(value, list):
            expected = "a list of layer types"
            self._add(
                layers.member, f"there is no list {layers.member}.", expected, value if there else _NOTHING
            )
            return
        least = max(layers.layers, default=-1) + 1
        if len(value) < least:
            message = f"{layers.member} ends before layer {least - 1}."
            self._add(layers.member, message, f"at least {least} layers", f"{len(value)} layers")
        wanted = [
            layers.in_set if index in layers.layers else layers.otherwise for index in range(len(value))
        ]
        wrong = [index for index, (have, want) in enumerate(zip(value, wanted, strict=True)) if have != want]
        if wrong:
            first = wrong[0]
            place = f"{layers.member}[{first}]"
            message = f"{len(wrong)} layers are of another type, first {place}."
            self._add(place, message, strict_json.show(wanted[first]), value[first], len(wrong))

    def _add(self, member: str, message: str, expected: str, found: object, count: int = 1) -> None:
        self._findings.add(
            "source.config_mismatch",
            f"{self._file} of {self._role}: {message}",
            where={"role": self._role, "file": self._file, "member": printable(member)},
            expected=expected,
            found=found if found == _NOTHING else strict_json.show(found),
            count=count,
        )


def _compare_configs(
    check: EqualConfigs, recipe: Recipe, configs: Mapping[str, Members], findings: Findings
) -> None:
    for group, members in recipe.sources[check.groups_of].config.requires.items():
        left, right = (at_path(configs[role], group)[1] for role in (check.left, check.right))
        for name in members:
            have, other = _member(left, name), _member(right, name)
            if have is not None and other is not None and same_value(have[0], other[0]):
                continue
            place = ".".join(part for part in (group, name) if part)
            lacking = [role for role, one in ((check.left, have), (check.right, other)) if one is None]
            findings.add(
                "source.configs_differ",
                f"{place} of {check.left} and of {check.right} cannot be compared: not in {' and '.join(lacking)}."
                if lacking
                else f"{place} of {check.left} and of {check.right} differ.",
                where={"roles": [check.left, check.right], "file": CONFIG, "member": printable(place)},
                expected=_NOTHING if have is None else strict_json.show(have[0]),
                found=_NOTHING if other is None else strict_json.show(other[0]),
            )


def _member(value: Any, name: str) -> tuple[Any] | None:
    """What an object holds under a name, or all of its names where these are demanded; None where there is nothing."""
    if not isinstance(value, Members):
        return None
    if name == EXACT_MEMBERS:
        return (list(value),)
    return (value[name],) if name in value else None
