"""Names, shapes and dtypes of source tensors against what rules read (check catalogue E2)."""

from dataclasses import dataclass, field
from typing import Any, Final

from ninfer_core import strict_json
from ninfer_core.findings import Findings
from ninfer_core.recipes.accounting import Accounting
from ninfer_core.recipes.crosschecks import EqualSourceTensors
from ninfer_core.recipes.document import Recipe
from ninfer_core.recipes.nearest import nearest
from ninfer_core.recipes.nodes import Tensor
from ninfer_core.sources.checkpoint import Checkpoint
from ninfer_core.sources.json_text import listed, printable
from ninfer_core.sources.safetensors import SourceTensor

_NAMED: Final = 16  # tensors that a finding about many of them names
_CODES: Final = {"shape": "source.shape_mismatch", "dtype": "source.dtype_mismatch"}
_NEAR_NAMED: Final = 8  # findings up to which a missing name is looked for among all others


def fits(leaf: Tensor, stored: SourceTensor) -> bool:
    """Whether a tensor of the checkpoint is what a rule reads; one word may be of shape [] or [1]."""
    return stored.dtype == leaf.dtype and _shape_fits(leaf, stored)


def _shape_fits(leaf: Tensor, stored: SourceTensor) -> bool:
    return stored.shape == leaf.shape or (leaf.scalar and stored.shape == ())


@dataclass(frozen=True, slots=True)
class _Misfit:
    """One fault of one place in a rule: a shape or a dtype that the checkpoint has otherwise."""

    what: str
    role: str
    rule: str
    template: str
    expected: str
    found: str


@dataclass(slots=True)
class Misfits:
    """Tensors of another shape or dtype, by what is wrong where: a rule over many layers has one fault, not many."""

    _found: dict[_Misfit, tuple[list[str], list[str]]] = field(default_factory=dict)  # tensors, objects

    def note(self, misfit: _Misfit, tensor: str, name: str) -> None:
        """One tensor that object `name` reads."""
        tensors, objects = self._found.setdefault(misfit, ([], []))
        tensors.append(tensor)
        objects.append(name)

    def report(self, findings: Findings) -> None:
        """A finding for each fault, with the first of its tensors and objects."""
        for misfit, (tensors, objects) in self._found.items():
            named = [printable(name) for name in tensors[:_NAMED]]
            where: dict[str, Any] = {"role": misfit.role, "tensor": tensors[0], "rule": misfit.rule}
            about = (
                f"{strict_json.show(tensors[0])} of {misfit.role}, read for {strict_json.show(objects[0])},"
            )
            message = f"{about} has another {misfit.what} than the recipe states."
            if len(tensors) > 1:
                where |= {"tensors": named, "objects": objects[:_NAMED]}
                message = (
                    f"{len(tensors):,} tensors of {misfit.role} that one rule reads, the first of them "
                    f"{strict_json.show(tensors[0])}, have another {misfit.what} than the recipe states."
                )
            findings.add(
                _CODES[misfit.what],
                message,
                object=objects[0],
                where=where,
                expected=misfit.expected,
                found=misfit.found,
                count=len(tensors),
            )


def compare_tensor(
    leaf: Tensor,
    tensor: str,
    checkpoint: Checkpoint,
    name: str,
    rule: str,
    findings: Findings,
    misfits: Misfits,
) -> bool:
    """Whether the tensor that `leaf` stands for is there and fits, for object `name`.

    One that is not there is a finding, one that does not fit is noted in `misfits`.
    """
    stored = checkpoint.tensors.get(tensor)
    if stored is None:
        near = nearest(tensor, checkpoint.tensors) if len(findings) < _NEAR_NAMED else None
        hint = "" if near is None else f"; did you mean {strict_json.show(near)}?"
        findings.add(
            "source.tensor_missing",
            f"{strict_json.show(name)} reads {strict_json.show(tensor)}, which {leaf.role} does not hold"
            f"{hint or '.'}",
            object=name,
            where={"role": leaf.role, "tensor": tensor, "rule": rule, **({"near": near} if near else {})},
            expected=f"{leaf.dtype} {list(leaf.shape)}",
            found="no such tensor",
        )
        return False
    if not _shape_fits(leaf, stored):
        wanted, found = str(list(leaf.shape)), strict_json.show(list(stored.shape))
        misfits.note(_Misfit("shape", leaf.role, rule, leaf.name, wanted, found), tensor, name)
    if stored.dtype != leaf.dtype:
        misfits.note(_Misfit("dtype", leaf.role, rule, leaf.name, leaf.dtype, stored.dtype), tensor, name)
    return fits(leaf, stored)


def report_unread(recipe: Recipe, accounting: Accounting, findings: Findings) -> None:
    """Findings for tensors that nothing reads: each one where names are exact, else those that nobody excused."""
    for role, uses in accounting.items():
        source = recipe.sources[role]
        if source.exact_tensor_names:
            compared = compared_names(recipe, role)
            _refuse_unread(
                role, [n for n, use in uses.items() if not use.objects and n not in compared], findings
            )
        else:
            _mention_unread(role, [n for n, use in uses.items() if use.state == "unaccounted"], findings)
        if source.preflight_tensors is not None and len(uses) < source.preflight_tensors:
            findings.add(
                "source.preflight_count",
                f"{role} holds {len(uses):,} tensors, upstream's own preflight asks for {source.preflight_tensors:,}.",
                where={"role": role},
                expected=source.preflight_tensors,
                found=len(uses),
            )


def compared_names(recipe: Recipe, role: str) -> frozenset[str]:
    """The tensors of a role that a cross check reads."""
    checks = [check for check in recipe.cross_checks if isinstance(check, EqualSourceTensors)]
    return frozenset(name for check in checks if role in (check.left, check.right) for name in check.names)


def _refuse_unread(role: str, names: list[str], findings: Findings) -> None:
    for name in names:
        findings.add(
            "source.tensor_unexpected",
            f"No rule reads {strict_json.show(name)} of {role}, and the recipe demands exact tensor names.",
            where={"role": role, "tensor": name},
            expected="a rule that reads it",
            found="unread",
        )


def _mention_unread(role: str, names: list[str], findings: Findings) -> None:
    if not names:
        return
    tensors = "1 tensor" if len(names) == 1 else f"{len(names):,} tensors"
    findings.add(
        "source.tensor_unaccounted",
        f"{tensors} of {role} {'is' if len(names) == 1 else 'are'} neither read nor named as left out: {listed(names)}.",
        where={"role": role, "tensors": [printable(name) for name in names[:_NAMED]]},
        expected="every tensor read, or left out with a reason",
        found=listed(names),
        count=len(names),
    )
