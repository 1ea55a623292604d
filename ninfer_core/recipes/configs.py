"""What a recipe demands of the JSON files beside a checkpoint: `config.json`, and named side files.

Numbers compare by their exact decimal value, so 1 is 1.0 and 1.0000000000000000001 is not; a boolean is no number.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ninfer_core.documents.fields import Fields
from ninfer_core.documents.sets import Sets, read_set
from ninfer_core.recipes.inputs import plain_name
from ninfer_core.strict_json import Huge, Members, Real

CONFIG: Final = "config.json"
EXACT_MEMBERS: Final = "__exact_members__"
_NUMBERS: Final = (int, Real, Huge)
_EXPONENT_DIGITS: Final = 18  # a longer exponent is compared as it is spelled, never made a number


@dataclass(frozen=True, slots=True)
class LayerTypes:
    """The list at `member`: layers of the set are of one type, all others of the other."""

    member: str  # dotted path
    layers: frozenset[int]
    in_set: str
    otherwise: str


@dataclass(frozen=True, slots=True)
class SideFile:
    """A JSON file whose members must be these; other members are free."""

    file: str
    members: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ConfigRules:
    """Demands on one role; `requires` is by dotted path of an object, where "" is the root."""

    requires: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    absent: tuple[str, ...] = ()  # dotted paths that may not be there
    layer_types: LayerTypes | None = None
    side_files: tuple[SideFile, ...] = ()

    @property
    def need_config(self) -> bool:
        """Whether `config.json` is read at all."""
        return bool(self.requires or self.absent or self.layer_types is not None)


def read_config_rules(fields: Fields, sets: Sets) -> ConfigRules:
    """The members of a source that speak of its JSON files."""
    requires = fields.object("config_requires") or Members()
    reader = Fields(fields.faults, requires, fields.path("config_requires"), (), tuple(requires))
    for group in requires:
        members = reader.object(group)
        if members is not None and EXACT_MEMBERS in members:
            at = (*reader.path(group),)
            Fields(fields.faults, members, at, (), tuple(members)).texts(EXACT_MEMBERS)
    groups = {name: group for name, group in requires.items() if isinstance(group, Members)}
    absent = fields.texts("config_absent") or ()
    return ConfigRules(groups, absent, _layer_types(fields, sets), _side_files(fields))


def _layer_types(fields: Fields, sets: Sets) -> LayerTypes | None:
    if "layer_types" not in fields:
        return None
    at = fields.path("layer_types")
    reader = Fields(fields.faults, fields.raw("layer_types"), at, ("member", "set", "in_set", "otherwise"))
    member, name = reader.text("member"), reader.text("set")
    in_set, otherwise = reader.text("in_set"), reader.text("otherwise")
    layers = None if name is None else read_set(fields.faults, reader.path("set"), name, sets, filled=False)
    if member is None or layers is None or in_set is None or otherwise is None:
        return None
    return LayerTypes(member, frozenset(layers), in_set, otherwise)


def _side_files(fields: Fields) -> tuple[SideFile, ...]:
    found = []
    for index, value in enumerate(fields.array("side_files") or []):
        reader = Fields(fields.faults, value, (*fields.path("side_files"), index), ("file", "members"))
        file, members = plain_name(reader, "file"), reader.object("members")
        if file is not None and members is not None:
            found.append(SideFile(file, members))
    return tuple(found)


def at_path(root: Any, path: str) -> tuple[bool, Any]:
    """Whether something stands at a dotted path, and what; "" is the root."""
    value = root
    for name in path.split(".") if path else ():
        if not isinstance(value, Mapping) or name not in value:
            return False, None
        value = value[name]
    return True, value


def same_value(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal: numbers by value, objects in any order, nothing else loosely."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS):
        return _decimal(left) == _decimal(right)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same_value(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_value, left, right))
    return type(left) is type(right) and bool(left == right)


def _decimal(number: int | Real | Huge) -> tuple[str, str, int, str]:
    """Sign, significant digits, power of ten, and an exponent that is too long to be added to it.

    Equal values have equal parts whatever their spelling; the time follows the text, not the exponent.
    """
    text = str(number) if isinstance(number, int) else number.text
    mantissa, _, exponent = text.lower().partition("e")
    sign, mantissa = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return "", "", 0, ""
    significant = digits.rstrip("0")
    power = len(digits) - len(significant) - len(fraction)
    below, size = ("-" if exponent.startswith("-") else ""), exponent.lstrip("+-").lstrip("0")
    if len(size) > _EXPONENT_DIGITS:
        return sign, significant, power, below + size
    return sign, significant, power + int(f"{below}{size or 0}"), ""
