"""A recipe put together with checkpoints: every object, in writer order, with the value that makes it.

Everything is compared before anything is read: names, shapes, dtypes, and the pinned files.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ninfer_core import strict_json
from ninfer_core.documents.templates import Assignment, assignments, fill
from ninfer_core.findings import Findings
from ninfer_core.formats import NumericFormat
from ninfer_core.io import ByteSource, FileSet
from ninfer_core.layouts.base import Layout, Shape
from ninfer_core.recipes.document import Recipe
from ninfer_core.recipes.files import open_files
from ninfer_core.recipes.nodes import Tensor, converts, hoist, leaves
from ninfer_core.recipes.roles import compare_names, open_roles
from ninfer_core.recipes.rules import Rule
from ninfer_core.recipes.values import Stored, Value, evaluate
from ninfer_core.sources.checkpoint import Checkpoint
from ninfer_core.sources.dtypes import DTYPES


@dataclass(frozen=True, slots=True)
class TensorPlan:
    """A tensor object: `value` has `shape`, `encode` turns its words into `fmt`; `sources` are (role, tensor)."""

    name: str
    fmt: NumericFormat
    layout: Layout
    shape: Shape
    encode: str
    value: Value
    sources: tuple[tuple[str, str], ...]
    converted: bool  # whether words change their type on the way, and are not just moved
    rule: str  # JSON path in the recipe

    def source_bytes(self, elements: int) -> int:
        """About what it takes to read so many elements."""
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
    """Objects in writer order: resources, then rules in document order.

    `unused_sources` holds, by role, the source tensors that no rule reads.
    """

    recipe: Recipe
    objects: tuple[TensorPlan | ResourcePlan, ...]
    checkpoints: Mapping[str, Checkpoint]
    unused_sources: Mapping[str, tuple[str, ...]]


def bind(
    recipe: Recipe,
    checkpoints: Mapping[str, Checkpoint | FileSet],
    inputs: Mapping[str, ByteSource],
    findings: Findings,
) -> Plan | None:
    """The plan, or None after at least one error finding; a role given as files is opened as the recipe says.

    Raises: CutShort, CannotRead.
    """
    found = Findings()
    opened = open_roles(recipe, checkpoints, found)
    compare_names(recipe.inputs, inputs, "input", found)
    folders: dict[str, FileSet] = {
        role: given.folder if isinstance(given, Checkpoint) else given for role, given in checkpoints.items()
    }
    files = open_files(recipe, folders, inputs, found)
    resources = [
        ResourcePlan(
            resource.object,
            files[resource.path],
            resource.role,
            resource.file or resource.input or "",
            resource.path,
        )
        for resource in recipe.resources
        if resource.path in files
    ]
    used: dict[str, set[str]] = {role: set() for role in recipe.sources}
    tensors = []
    for rule in recipe.rules:
        for name, values in zip(rule.objects, assignments(rule.each), strict=True):
            plan = _tensor(rule, name, values, opened, used, found)
            if plan is not None:
                tensors.append(plan)
    unused = {
        role: tuple(name for name in checkpoint.tensors if name not in used[role])
        for role, checkpoint in opened.items()
    }
    for role, names in unused.items():
        if recipe.sources[role].exact_tensor_names:
            _refuse_unused(role, names, found)
    found.blame("source")
    findings.extend(found)
    if found.errors:
        return None
    return Plan(recipe, (*resources, *tensors), MappingProxyType(opened), MappingProxyType(unused))


def _tensor(
    rule: Rule,
    name: str,
    values: Assignment,
    checkpoints: Mapping[str, Checkpoint],
    used: Mapping[str, set[str]],
    findings: Findings,
) -> TensorPlan | None:
    sources = []
    sound = True
    for leaf in leaves(rule.value):
        tensor = fill(leaf.name, values)
        used[leaf.role].add(tensor)
        sources.append((leaf.role, tensor))
        if leaf.role not in checkpoints or not _fits(
            leaf, tensor, checkpoints[leaf.role], name, rule, findings
        ):
            sound = False
    if not sound:
        return None

    def stored(leaf: Tensor) -> Value:
        checkpoint = checkpoints[leaf.role]
        return Stored(checkpoint, checkpoint.tensors[fill(leaf.name, values)])

    value = evaluate(hoist(rule.value), stored)
    distinct = tuple(dict.fromkeys(sources))
    return TensorPlan(
        name,
        rule.fmt,
        rule.layout,
        value.shape,
        rule.encode,
        value,
        distinct,
        converts(rule.value),
        rule.path,
    )


def _fits(
    leaf: Tensor, tensor: str, checkpoint: Checkpoint, name: str, rule: Rule, findings: Findings
) -> bool:
    where = {"role": leaf.role, "tensor": tensor, "rule": rule.path}
    stored = checkpoint.tensors.get(tensor)
    wanted = f"{leaf.dtype} {list(leaf.shape)}"
    if stored is None:
        message = (
            f"{strict_json.show(name)} reads {strict_json.show(tensor)}, which {leaf.role} does not hold."
        )
        findings.add(
            "source.tensor_missing",
            message,
            object=name,
            where=where,
            expected=wanted,
            found="no such tensor",
        )
        return False
    about = f"{strict_json.show(tensor)} of {leaf.role}, read for {strict_json.show(name)},"
    found = strict_json.show(list(stored.shape))
    if stored.shape != leaf.shape:
        message = f"{about} has another shape than the recipe states."
        findings.add(
            "source.shape_mismatch", message, object=name, where=where, expected=list(leaf.shape), found=found
        )
    if stored.dtype != leaf.dtype:
        message = f"{about} has another dtype than the recipe states."
        findings.add(
            "source.dtype_mismatch",
            message,
            object=name,
            where=where,
            expected=leaf.dtype,
            found=stored.dtype,
        )
    return (stored.shape, stored.dtype) == (leaf.shape, leaf.dtype)


def _refuse_unused(role: str, names: tuple[str, ...], findings: Findings) -> None:
    for name in names:
        findings.add(
            "source.tensor_unexpected",
            f"No rule reads {strict_json.show(name)} of {role}, and the recipe demands exact tensor names.",
            where={"role": role, "tensor": name},
            expected="a rule that reads it",
            found="unread",
        )


def report_source_changes(plan: Plan, findings: Findings) -> None:
    """A finding for every file that was written to since the plan was bound: what was read is then no one thing."""
    found = Findings()

    def compare(kind: str, name: str, what: str | None) -> None:
        if what is not None:
            where = {kind: name}
            found.add(
                "source.changed", f"{kind} {name}: {what}", where=where, expected="no change", found=what
            )

    for role, checkpoint in plan.checkpoints.items():
        compare("role", role, checkpoint.changed())
    for item in plan.objects:
        if isinstance(item, ResourcePlan):
            compare("input" if item.role is None else "file", item.file, item.source.changed())
    found.blame("source")
    findings.extend(found)
