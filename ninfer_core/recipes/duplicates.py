"""Objects with more than one maker: one finding for each pair of places, however many names they share."""

from collections.abc import Sequence

from ninfer_core import strict_json
from ninfer_core.documents.fields import Faults, Path
from ninfer_core.recipes.rules import Rule
from ninfer_core.recipes.sources import Resource
from ninfer_core.sources.json_text import json_path, listed
from ninfer_core.strict_json import Json, Members


def refuse_duplicates(
    faults: Faults, stated: Json, resources: Sequence[Resource | None], rules: Sequence[Rule | None]
) -> None:
    """Findings for names that are made twice; `stated` is the member `rules` as the document has it."""
    makers: dict[str, Path] = {}
    again: dict[tuple[Path, Path], dict[str, None]] = {}  # first and second maker: the names
    made: list[tuple[Path, tuple[str, ...]]] = []
    made += [(("resources", i), (item.object,)) for i, item in enumerate(resources) if item is not None]
    made += [(("rules", i), rule.objects) for i, rule in enumerate(rules) if rule is not None]
    for path, objects in made:
        for name in objects:
            if name in makers:
                again.setdefault((makers[name], path), {})[name] = None
            makers[name] = path
    for (first, path), names in again.items():
        places = f"{json_path(first)} and {json_path(path)}"
        if first == path and (rule := rules[int(path[1])]) is not None:
            message = _repeated(rule, stated[int(path[1])] if isinstance(stated, list) else None)
            found = f"{len(rule.objects):,} objects of {_names(len(set(rule.objects)))}"
        else:
            message, found = f"{_some(list(names))} made here and at {json_path(first)}.", places
        faults.add("object_duplicate", path, message, "one maker", found, names, other=json_path(first))


def _repeated(rule: Rule, stated: Json) -> str:
    """One rule that makes a name again for every value of a variable that its object does not name."""
    template = stated.get("object") if isinstance(stated, Members) else None
    lacking = [name for name, _ in rule.each if f"{{{name}}}" not in str(template)]
    if not lacking:
        return f"{_some(sorted(set(rule.objects)))} made here more than once: a set holds a number twice."
    variables = " and ".join(f"{{{name}}}" for name in lacking)
    which = "variable" if len(lacking) == 1 else "variables"
    return f"the object {strict_json.show(template)} lacks the {which} {variables} of `each`, so one name is made again and again."


def _some(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{strict_json.show(names[0])} is"
    return f"{len(names):,} objects ({listed(names, 3)}) are"


def _names(count: int) -> str:
    return "1 name" if count == 1 else f"{count:,} names"
