"""Encoders that are not ours: who made the words, and what is promised of them.

Such words cannot be derived again. What remains is whether they are legal, and whether a stated bound holds.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ninfer_core.documents.fields import Fields
from ninfer_core.findings import Findings
from ninfer_core.formats import DirectFormat
from ninfer_core.kernels.values import SOURCE_DTYPES
from ninfer_core.recipes.bundles import Bundle
from ninfer_core.recipes.encoders import ENCODERS
from ninfer_core.sources.json_text import listed
from ninfer_core.strict_json import Members, Real

if TYPE_CHECKING:
    from ninfer_core.recipes.document import Recipe
    from ninfer_core.recipes.plan import TensorPlan

MEASURES: Final = ("max_abs_error", "max_scale_error", "nmse", "min_sqnr_db")


@dataclass(frozen=True, slots=True)
class Bound:
    """A promise about decoded values against the source, every member that is not None at once.

    `max_scale_error` counts in scales of the value's own group, row or block; `min_sqnr_db` is a lower limit.
    """

    max_abs_error: float | None = None
    max_scale_error: float | None = None
    nmse: float | None = None
    min_sqnr_db: float | None = None


@dataclass(frozen=True, slots=True)
class Producer:
    """A foreign encoder as the document names it; `text` is a bound in words, which nobody can evaluate."""

    name: str
    version: str
    document: str | None
    bound: Bound | None
    text: str | None = None


def read_producer(fields: Fields) -> Producer | None:
    """The member `producer`; None when absent or after findings."""
    if "producer" not in fields:
        return None
    reader = Fields(
        fields.faults,
        fields.raw("producer"),
        fields.path("producer"),
        ("name", "version"),
        ("document", "bound"),
    )
    name, version = reader.text("name"), reader.text("version")
    document = None if reader.raw("document") is None else reader.text("document")
    stated = reader.raw("bound")
    bound, text = None, None
    if isinstance(stated, Members):
        bound = _bound(reader, stated)
    elif isinstance(stated, str):
        text = reader.text("bound")
    elif stated is not None:
        reader.wrong_type("bound", stated, "null, a string or an object")
    if name is None or version is None:
        return None
    return Producer(name, version, document, bound, text)


def _bound(reader: Fields, stated: Members) -> Bound | None:
    fields = Fields(reader.faults, stated, reader.path("bound"), (), MEASURES)
    if not stated:
        reader.wrong_value("bound", f"at least one of {', '.join(MEASURES)}")
        return None
    limits = {name: _limit(fields, name) for name in MEASURES if name in fields}
    return Bound(**limits)


def _limit(fields: Fields, name: str) -> float | None:
    value = fields.raw(name)
    number = value.value if isinstance(value, Real) else value
    if type(number) not in (int, float):
        fields.wrong_type(name, value, "a number")
        return None
    if not (0 <= number < math.inf):
        fields.wrong_value(name, "a finite number that is not negative")
        return None
    return float(number)


def is_evaluable(plan: "TensorPlan") -> bool:
    """Whether every part of the producer's bound can be tried on this object: values that are numbers, and scales where
    the bound counts in scales."""
    bound = None if plan.producer is None else plan.producer.bound
    if bound is None or plan.fmt.name == "I32":
        return False
    if not isinstance(plan.value, Bundle) and plan.value.dtype not in SOURCE_DTYPES:
        return False
    return bound.max_scale_error is None or not isinstance(plan.fmt, DirectFormat)


def refuse_foreign(recipe: "Recipe", findings: Findings) -> None:
    """One finding that names every object of a foreign producer: such a recipe can be verified, not converted."""
    foreign = [rule for rule in recipe.rules if rule.producer is not None]
    if not foreign:
        return
    objects = [name for rule in foreign for name in rule.objects]
    producers = list(dict.fromkeys(rule.maker for rule in foreign))
    found = Findings()
    found.add(
        "recipe.producer_foreign",
        f"{len(objects):,} objects are made by {listed(producers)}, which is no encoder of ours: {listed(objects)}.",
        object=objects[0],
        where={"objects": objects, "producers": producers},
        expected=", ".join(ENCODERS),
        found=listed(producers),
        count=len(objects),
    )
    found.blame("recipe")
    findings.extend(found)
