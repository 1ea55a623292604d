"""Names, shapes and dtypes of source tensors against what rules read (check catalogue E2)."""

from typing import Final

from ninfer_core import strict_json
from ninfer_core.findings import Findings
from ninfer_core.recipes.accounting import Accounting
from ninfer_core.recipes.crosschecks import EqualSourceTensors
from ninfer_core.recipes.document import Recipe
from ninfer_core.recipes.nodes import Tensor
from ninfer_core.sources.checkpoint import Checkpoint
from ninfer_core.sources.json_text import listed, printable
from ninfer_core.sources.safetensors import SourceTensor

_NAMED: Final = 16  # tensors that a finding about many of them names


def fits(leaf: Tensor, stored: SourceTensor) -> bool:
    """Whether a tensor of the checkpoint is what a rule reads; one word may be of shape [] or [1]."""
    return stored.dtype == leaf.dtype and _shape_fits(leaf, stored)


def _shape_fits(leaf: Tensor, stored: SourceTensor) -> bool:
    return stored.shape == leaf.shape or (leaf.scalar and stored.shape == ())


def compare_tensor(
    leaf: Tensor, tensor: str, checkpoint: Checkpoint, name: str, rule: str, findings: Findings
) -> bool:
    """Whether the tensor that `leaf` stands for is there and fits; if not, findings about object `name` say so."""
    where = {"role": leaf.role, "tensor": tensor, "rule": rule}
    stored = checkpoint.tensors.get(tensor)
    if stored is None:
        findings.add(
            "source.tensor_missing",
            f"{strict_json.show(name)} reads {strict_json.show(tensor)}, which {leaf.role} does not hold.",
            object=name,
            where=where,
            expected=f"{leaf.dtype} {list(leaf.shape)}",
            found="no such tensor",
        )
        return False
    about = f"{strict_json.show(tensor)} of {leaf.role}, read for {strict_json.show(name)},"
    if not _shape_fits(leaf, stored):
        findings.add(
            "source.shape_mismatch",
            f"{about} has another shape than the recipe states.",
            object=name,
            where=where,
            expected=list(leaf.shape),
            found=strict_json.show(list(stored.shape)),
        )
    if stored.dtype != leaf.dtype:
        findings.add(
            "source.dtype_mismatch",
            f"{about} has another dtype than the recipe states.",
            object=name,
            where=where,
            expected=leaf.dtype,
            found=stored.dtype,
        )
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
    findings.add(
        "source.tensor_unaccounted",
        f"{len(names):,} tensors of {role} are neither read nor named as left out: {listed(names)}.",
        where={"role": role, "tensors": [printable(name) for name in names[:_NAMED]]},
        expected="every tensor read, or left out with a reason",
        found=listed(names),
        count=len(names),
    )
