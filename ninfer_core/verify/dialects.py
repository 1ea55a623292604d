"""Codes and their scales in safetensors checkpoints: who belongs to whom by name, and whether the shapes fit.

Names alone decide, and only names that some widespread writer gives: a plain tensor called `scale` is nobody's scale.
GPTQ and AWQ names (`qweight`, `qzeros`) are not looked at.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from ninfer_core.findings import Findings
from ninfer_core.layouts.base import Shape
from ninfer_core.sources.safetensors import SourceTensor

Tensors = Mapping[str, SourceTensor]

FP8: Final = frozenset(("F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ"))
FLOATS: Final = frozenset(("F32", "F16", "BF16"))
PACKED: Final = ".weight_packed"
WEIGHT: Final = ".weight"
_SCALE_NAMES: Final = ("scale", "scales", "scale_inv", "scale_2")
# What ends a name that nothing but the scale of a weight has, and what its module then must hold.
_OWNED: Final = (".weight_scale", ".weight_scale_inv", ".weight_scale_2", ".weight_global_scale")
_OF_INPUTS: Final = (".input_scale", ".input_global_scale")
_BLOCKS: Final = (128, 64, 32, 16)  # rows and columns of one block scale; columns of one group scale


@dataclass(frozen=True, slots=True)
class Misfit:
    """A code or a scale without its partner, or a scale of another shape; `name` is the tensor at fault."""

    code: str
    name: str
    message: str
    missing: tuple[str, ...] = ()
    weight: str | None = None
    found: Shape | None = None
    expected: Shape | None = None

    def report(self, ordinal: int, findings: Findings) -> None:
        """As a finding that fails the tensor."""
        facts = {
            "missing": list(self.missing) or None,
            "weight": self.weight,
            "found": None if self.found is None else list(self.found),
            "expected": None if self.expected is None else list(self.expected),
        }
        where = {"tensor": self.name, **{key: value for key, value in facts.items() if value is not None}}
        expected = self.expected if self.expected is not None else " or ".join(self.missing)
        findings.add(
            self.code,
            self.message,
            object=self.name,
            where=where,
            expected=list(expected) if isinstance(expected, tuple) else expected,
            found=list(self.found) if self.found is not None else "no such tensor",
            ordinal=ordinal,
        )


def misfits(tensors: Tensors, block: Shape | None = None) -> Iterator[Misfit]:
    """Everything wrong between codes and scales, in the order of the tensors; `block` is the declared block size."""
    for name, tensor in tensors.items():
        if tensor.dtype in FP8 and _holds_codes(name, tensor):
            yield from _fp8(tensors, name, tensor, block)
        elif name.endswith(PACKED):
            yield from _packed(tensors, name, tensor)
        elif name.endswith(WEIGHT) and tensor.dtype == "U32":
            yield from _words(tensors, name, tensor)
        elif name.endswith(_OWNED + _OF_INPUTS):
            yield from _owner(tensors, name)
        elif name.endswith(".biases"):
            yield from _affine_orphan(tensors, name)


def _holds_codes(name: str, tensor: SourceTensor) -> bool:
    # Scales have eight bits too, and some writers mark a file by a vector that nobody reads.
    scale = name.endswith(tuple(f"{joint}{word}" for word in _SCALE_NAMES for joint in "._"))
    return not scale and (name.endswith(WEIGHT) or len(tensor.shape) > 1)


def _fp8(tensors: Tensors, name: str, tensor: SourceTensor, block: Shape | None) -> Iterator[Misfit]:
    module = name.removesuffix(WEIGHT)
    candidates = (f"{name}_scale", f"{name}_scale_inv", f"{module}.scale", f"{module}.scale_weight")
    scale = next((known for known in candidates if known in tensors), None)
    if scale is None:
        message = f"{name} holds {tensor.dtype} codes, and no tensor holds their scale"
        yield Misfit("relations.scale_missing", name, message, missing=candidates[:2])
    elif name.endswith(WEIGHT) and len(tensor.shape) == 2:
        yield from _fits(name, tensor, scale, tensors[scale], _fp8_shapes(tensor.shape, block))


def _fp8_shapes(shape: Shape, block: Shape | None) -> tuple[Shape, ...]:
    """Shapes of a scale for FP8 codes [N, K]: by row, by tensor, by block or by group of a row."""
    n, k = shape
    sizes = (
        [block] if block is not None else [(side, side) for side in _BLOCKS] + [(1, side) for side in _BLOCKS]
    )
    blocks = tuple((-(-n // rows), -(-k // columns)) for rows, columns in sizes)
    return ((n, 1), (n,), (1,), (), (1, 1), *blocks)


def _packed(tensors: Tensors, name: str, tensor: SourceTensor) -> Iterator[Misfit]:
    module = name.removesuffix(PACKED)
    scale, common = f"{module}.weight_scale", f"{module}.weight_global_scale"
    if scale not in tensors:
        message = f"{name} holds packed codes, and no tensor holds their scales"
        yield Misfit("relations.scale_missing", name, message, missing=(scale,))
        return
    of = tensors[scale]
    if of.dtype == "F8_E4M3" and common not in tensors:
        message = f"{name} holds packed FP4 codes with scales of eight bits, and no tensor holds the scale of the whole"
        yield Misfit("relations.scale_missing", name, message, missing=(common,))
    if len(tensor.shape) == 2:
        yield from _fits(name, tensor, scale, of, _packed_shapes(tensor, of))
    if common in tensors:
        yield from _fits(name, tensor, common, tensors[common], ((1,), ()))


def _packed_shapes(codes: SourceTensor, scale: SourceTensor) -> tuple[Shape, ...]:
    n, width = codes.shape
    if codes.dtype == "U8" and scale.dtype in ("F8_E4M3", "F8_E8M0", "U8"):
        group = 16 if scale.dtype == "F8_E4M3" else 32  # two codes a byte: NVFP4, MXFP4
        return ((n, -(-2 * width // group)),)
    # Packed integers: only a declaration says how many columns the words hold, but rows are rows.
    return ((n, scale.shape[-1] if scale.shape else 1), (n,))


def _words(tensors: Tensors, name: str, tensor: SourceTensor) -> Iterator[Misfit]:
    module = name.removesuffix(WEIGHT)
    scales, biases = f"{module}.scales", f"{module}.biases"
    if scales not in tensors:
        message = f"{name} holds codes packed in words of 32 bits, and no tensor holds their scales"
        yield Misfit("relations.scale_missing", name, message, missing=(scales,))
        return
    of = tensors[scales]
    rows = (*tensor.shape[:-1], of.shape[-1] if of.shape else 1)
    yield from _fits(name, tensor, scales, of, (rows,))
    if biases in tensors:
        yield from _fits(name, tensor, biases, tensors[biases], (of.shape,))
    elif of.dtype in FLOATS:
        message = f"{name} has scales but no biases, and its codes count from zero upwards"
        yield Misfit("relations.scale_missing", name, message, missing=(biases,))


def _owner(tensors: Tensors, name: str) -> Iterator[Misfit]:
    suffix = next(end for end in _OWNED + _OF_INPUTS if name.endswith(end))
    module = name.removesuffix(suffix)
    weights = (f"{module}{WEIGHT}", f"{module}{PACKED}")
    if not any(weight in tensors for weight in (*weights, f"{module}.qweight")):
        message = f"{name} belongs to a weight that is not there"
        yield Misfit("relations.scale_orphan", name, message, missing=weights)
    elif suffix == ".weight_scale_2":
        scale = f"{module}.weight_scale"
        if scale not in tensors:
            message = f"{name} is the scale of scales, which no tensor holds"
            yield Misfit("relations.scale_missing", name, message, missing=(scale,))
        elif weights[0] in tensors and (codes := tensors[weights[0]]).dtype == "U8" and len(codes.shape) == 2:
            of = tensors[scale]
            yield from _fits(weights[0], codes, scale, of, _packed_shapes(codes, of))


def _affine_orphan(tensors: Tensors, name: str) -> Iterator[Misfit]:
    module = name.removesuffix(".biases")
    scales = f"{module}.scales"
    if scales in tensors and not any(f"{module}.{word}" in tensors for word in ("weight", "qweight")):
        message = f"{scales} and {name} belong to a weight that is not there"
        yield Misfit("relations.scale_orphan", scales, message, missing=(f"{module}{WEIGHT}",))


def _fits(
    weight: str, codes: SourceTensor, name: str, scale: SourceTensor, shapes: tuple[Shape, ...]
) -> Iterator[Misfit]:
    if scale.shape in shapes:
        return
    same_rank = [shape for shape in shapes if len(shape) == len(scale.shape)]
    expected = (same_rank or list(shapes))[0]
    message = (
        f"{name} has shape {list(scale.shape)} ({prod(scale.shape):,} values), which does not fit {weight} of shape "
        f"{list(codes.shape)}"
    )
    yield Misfit("relations.scale_shape", name, message, weight=weight, found=scale.shape, expected=expected)
