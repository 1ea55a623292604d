"""A recipe against the target that it fills: exactly its objects, in its formats and shapes."""

from collections.abc import Iterable, Sequence

from ninfer_core.documents.fields import Faults, Path
from ninfer_core.recipes.rules import Rule
from ninfer_core.recipes.sources import Resource
from ninfer_core.sources.json_text import listed
from ninfer_core.targets import Target, TargetObject, registered


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

    def compare(
        self, resources: Iterable[Resource], rules: Iterable[Rule], identity: tuple[str, str]
    ) -> None:
        """Everything; `identity` is that of the recipe."""
        target, made = self._target, set[str]()
        if identity != (target.model_id, target.weights_id):
            found = "/".join(identity)
            message = f"the recipe makes {found}, the target is {target.identity}."
            self._faults.add("identity_differs", ("identity",), message, target.identity, found)
        for index, resource in enumerate(resources):
            made.add(resource.object)
            self._require_known(("resources", index), [resource.object])
            self._compare_kind(("resources", index), [resource.object], "resource")
        for index, rule in enumerate(rules):
            made.update(rule.objects)
            self._compare_rule(("rules", index), rule)
        self._require_made(made)

    def _compare_rule(self, path: Path, rule: Rule) -> None:
        self._require_known(path, rule.objects)
        self._compare_kind(path, rule.objects, "tensor")
        shapes, formats = [], []
        for name, fmt in zip(rule.objects, rule.formats, strict=True):
            wanted = self._target.by_name.get(name)
            if wanted is None or wanted.kind != "tensor":
                continue
            if wanted.format != fmt:
                formats.append((wanted, fmt.name))
            if wanted.shape != rule.value.shape:
                shapes.append(wanted)
        if formats:
            first, stated = formats[0]
            expected = first.format.name if first.format is not None else ""
            names = [wanted.name for wanted, _ in formats]
            self._faults.add(
                "format_differs", path, "the target states another format.", expected, stated, names
            )
        if shapes:
            wanted_shape, found = list(shapes[0].shape or ()), list(rule.value.shape)
            names = [wanted.name for wanted in shapes]
            message = "the target states another shape."
            self._faults.add("shape_differs", path, message, wanted_shape, found, names)

    def _require_known(self, path: Path, names: Sequence[str]) -> None:
        strange = [name for name in names if name not in self._target.by_name]
        if strange:
            message = f"{self._target.identity} has no such object."
            expected = "objects of the target"
            self._faults.add("object_not_in_target", path, message, expected, listed(strange), strange)

    def _compare_kind(self, path: Path, names: Sequence[str], kind: str) -> None:
        known = self._target.by_name
        wrong = [name for name in names if name in known and known[name].kind != kind]
        if wrong:
            expected = f"a {known[wrong[0]].kind}"
            self._faults.add(
                "format_differs", path, f"the target has {expected} here.", expected, f"a {kind}", wrong
            )

    def _require_made(self, made: set[str]) -> None:
        begun = {
            item.bundle for item in self._target.objects if item.bundle is not None and item.name in made
        }
        missing = [item.name for item in self._target.objects if self._is_missing(item, made, begun)]
        if missing:
            message = f"no rule or resource makes {len(missing):,} of the objects of {self._target.identity}."
            found = "nothing"
            self._faults.add("object_without_rule", ("rules",), message, listed(missing), found, missing)

    @staticmethod
    def _is_missing(item: TargetObject, made: set[str], begun: set[str]) -> bool:
        # An optional bundle is made as a whole or not at all.
        return item.name not in made and (item.bundle is None or item.bundle in begun)
