"""A recipe against the target that it fills: exactly its objects, in its formats and shapes."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from ninfer_core.documents.fields import Faults, Path
from ninfer_core.sources.json_text import listed
from ninfer_core.targets import Target, TargetObject, registered

if TYPE_CHECKING:
    from ninfer_core.recipes.rules import Rule


def stated_target(model_id: str, weights_id: str, recipe_id: str) -> Target | None:
    """The registered target of an identity; where there are several, the one that names this recipe."""
    known = registered(model_id, weights_id)
    named = [target for target in known if target.recipe_id == recipe_id]
    if len(named) == 1:
        return named[0]
    return known[0] if len(known) == 1 else None


class Fitting:
    """Compares; whatever does not fit is a finding, rule by rule with every object concerned."""

    def __init__(self, faults: Faults, target: Target) -> None:
        self._faults, self._target = faults, target

    def compare_identity(self, model_id: str, weights_id: str) -> None:
        """The identity of the recipe."""
        if (model_id, weights_id) != (self._target.model_id, self._target.weights_id):
            found = f"{model_id}/{weights_id}"
            message = f"the recipe makes {found}, the target is {self._target.identity}."
            self._faults.add("identity_differs", ("identity",), message, self._target.identity, found)

    def compare_names(self, path: Path, names: Sequence[str], kind: Literal["tensor", "resource"]) -> None:
        """That the target has these objects, and as this kind."""
        known = self._target.by_name
        strange = [name for name in names if name not in known]
        if strange:
            message = f"{self._target.identity} has no such object."
            expected, found = "objects of the target", listed(strange)
            self._faults.add("object_not_in_target", path, message, expected, found, strange)
        wrong = [name for name in names if name in known and known[name].kind != kind]
        if wrong:
            expected = f"a {known[wrong[0]].kind}"
            message = f"the target has {expected} here."
            self._faults.add("format_differs", path, message, expected, f"a {kind}", wrong)

    def compare_rule(self, path: Path, rule: "Rule") -> None:
        """One rule, whose formats are its own or the target's."""
        self.compare_names(path, rule.objects, "tensor")
        shapes, formats = [], []
        for name, fmt in rule.made:
            wanted = self._target.by_name.get(name)
            if wanted is None or wanted.format is None:
                continue
            if wanted.format != fmt:
                formats.append((name, wanted.format.name, fmt.name))
            if wanted.shape != rule.value.shape:
                shapes.append((name, wanted.shape))
        if formats:
            _, expected, found = formats[0]
            message, names = "the target states another format.", [name for name, _, _ in formats]
            self._faults.add("format_differs", path, message, expected, found, names)
        if shapes:
            wanted_shape, shape = list(shapes[0][1] or ()), list(rule.value.shape)
            message, names = "the target states another shape.", [name for name, _ in shapes]
            self._faults.add("shape_differs", path, message, wanted_shape, shape, names)

    def require_made(self, made: Iterable[str]) -> None:
        """That everything is made; of an optional bundle all or nothing."""
        names = set(made)
        begun = {
            item.bundle for item in self._target.objects if item.bundle is not None and item.name in names
        }

        def is_missing(item: TargetObject) -> bool:
            return item.name not in names and (item.bundle is None or item.bundle in begun)

        missing = [item.name for item in self._target.objects if is_missing(item)]
        if missing:
            message = f"no rule or resource makes {len(missing):,} of the objects of {self._target.identity}."
            self._faults.add("object_without_rule", ("rules",), message, listed(missing), "nothing", missing)
