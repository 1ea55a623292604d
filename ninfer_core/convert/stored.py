"""What a recipe demands of a whole object, or of several, held against what was written and before it has a name."""

from collections.abc import Callable, Sequence

from ninfer_core.containers.directory import Artifact, TensorObject
from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.findings import Findings
from ninfer_core.recipes.claims import claims, relations
from ninfer_core.recipes.document import Recipe
from ninfer_core.verify import faults
from ninfer_core.verify.outcomes import Part
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.relations import relation_tasks
from ninfer_core.verify.whole import object_tasks


def check_stored(artifact: Artifact, recipe: Recipe, pool: Pool, findings: Findings) -> None:
    """Run what verification runs beside its blocks: whole-object restrictions, and relations (catalogue C and D).

    Raises: CutShort, CannotRead.
    """
    covering = claims(recipe)
    names: list[str] = []
    tasks: list[Callable[[], Part]] = []
    for item in artifact.readable:
        if isinstance(item, TensorObject):
            found = object_tasks(item, artifact.payload, covering.get(item.name, ()), pool)
            own = [task.run for task in found]
            tasks += own
            names += [item.name] * len(own)
    for name, part in zip(names, pool.run(tasks), strict=True):
        if part.error is not None:
            raise part.error
        faults.report(part.faults, name, findings)
    related = relation_tasks(artifact, relations(recipe), covering, (), pool)
    for answer in _answers([one.task.run for one in related if one.task is not None], pool):
        findings.extend(answer)


def _answers(
    tasks: Sequence[Callable[[], Findings | CutShort | CannotRead]], pool: Pool
) -> Sequence[Findings]:
    found = []
    for answer in pool.run(tasks):
        if not isinstance(answer, Findings):
            raise answer
        found.append(answer)
    return found
