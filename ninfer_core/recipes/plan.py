"""A plan: every object that a recipe makes of its sources, in writer order, with the value that makes it.

`binding.bind` builds one; everything that can be compared before any work was compared by then.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ninfer_core.documents.templates import Assignment
from ninfer_core.findings import Findings
from ninfer_core.formats import NumericFormat
from ninfer_core.io import ByteSource
from ninfer_core.layouts.base import Layout, Shape
from ninfer_core.recipes.accounting import Accounting, unused_sources
from ninfer_core.recipes.bundles import Bundle
from ninfer_core.recipes.document import Recipe
from ninfer_core.recipes.evidence import EvidenceKind
from ninfer_core.recipes.producers import Producer
from ninfer_core.recipes.restrictions import Restriction
from ninfer_core.recipes.trees import expanded_tree
from ninfer_core.recipes.values import Value
from ninfer_core.sources.checkpoint import Checkpoint
from ninfer_core.sources.dtypes import DTYPES
from ninfer_core.sources.json_text import printable
from ninfer_core.targets import Target


@dataclass(frozen=True, slots=True)
class TensorPlan:
    """A tensor object: `value` has `shape`, `encode` makes words of `fmt` out of it.

    `encode` is None where a foreign `producer` made the words, and then they cannot be derived. `sources` are
    (role, tensor), `inputs` the inputs read beside them. `evidence_kind` is what equal words would prove at best;
    `claims` are the restrictions whose scope covers the object.
    """

    name: str
    fmt: NumericFormat
    layout: Layout
    shape: Shape
    encode: str | None
    producer: Producer | None
    value: Value | Bundle
    sources: tuple[tuple[str, str], ...]
    inputs: tuple[str, ...]
    converted: bool  # whether words change their type on the way, and are not just moved
    evidence_kind: EvidenceKind
    claims: tuple[Restriction, ...]
    rule: str  # JSON path in the recipe
    template: Mapping[str, Any]  # the tree as the rule states it
    assignment: Assignment

    @property
    def tree(self) -> Mapping[str, Any]:
        """The expanded operation tree as plain JSON."""
        return expanded_tree(self.template, self.assignment)

    @property
    def maker(self) -> str:
        """The encoder's name, or the producer's."""
        return self.producer.name if self.encode is None and self.producer is not None else self.encode or ""

    def source_bytes(self, elements: int) -> int:
        """About what it takes to read so many elements of the object."""
        if isinstance(self.value, Bundle):
            return elements * self.value.codes_per_row // max(1, self.value.shape[1])
        return elements * DTYPES[self.value.dtype].bits // 8


@dataclass(frozen=True, slots=True)
class ResourcePlan:
    """A resource object: the bytes of `source`, which is `file` of a role, or an input (then `role` is None)."""

    name: str
    source: ByteSource
    role: str | None
    file: str
    rule: str  # JSON path in the recipe


@dataclass(frozen=True, slots=True)
class Plan:
    """Objects in writer order: the target's, else resources and then rules in document order.

    `accounting` says of every source tensor, by role, what became of it; `read` are the files of each role that anything
    was read of, with tensors or beside them, by name.
    """

    recipe: Recipe
    objects: tuple[TensorPlan | ResourcePlan, ...]
    checkpoints: Mapping[str, Checkpoint]
    inputs: Mapping[str, ByteSource]
    accounting: Accounting
    read: Mapping[str, Mapping[str, ByteSource]]

    @property
    def target(self) -> Target | None:
        """The target that the recipe fills, where there is one."""
        return self.recipe.target

    @property
    def unused_sources(self) -> Mapping[str, tuple[str, ...]]:
        """By role, the source tensors that no rule reads."""
        return {role: tuple(names) for role, names in unused_sources(self.accounting).items()}


def report_source_changes(plan: Plan, findings: Findings) -> None:
    """A finding for every file that was written to since the plan was bound: what was read is then no one thing."""
    found = Findings()

    def compare(shown: str, source: ByteSource, **where: str) -> None:
        if what := source.changed():
            found.add("source.changed", f"{shown}: {what}", where=where, expected="no change", found=what)

    for role, files in plan.read.items():
        for name, source in files.items():
            compare(f"{printable(name)} of {role}", source, role=role, file=printable(name))
    for name, source in plan.inputs.items():
        compare(f"input {name}", source, input=name)
    found.blame("source")
    findings.extend(found)
