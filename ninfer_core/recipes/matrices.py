"""Operations that name source tensors: a plain one, and the two kinds of quantized matrices."""

from math import prod

from ninfer_core.documents.fields import Fields
from ninfer_core.layouts.base import Shape
from ninfer_core.recipes.bundles import (
    FP8_SUFFIXES,
    NVFP4_GROUP,
    NVFP4_SUFFIXES,
    BundleTree,
    PartTree,
)
from ninfer_core.recipes.nodes import Tensor
from ninfer_core.recipes.reading import Reader, misfit, read_dtype


def read_tensor(reader: Reader, fields: Fields) -> Tensor | None:
    """`tensor`: a source tensor of just this shape and dtype."""
    role, dtype, shape = reader.role(fields), read_dtype(fields), reader.shape(fields)
    name = reader.template(fields.text("name"), fields.path("name"))
    if role is None or name is None or dtype is None or shape is None:
        return None
    return Tensor(role, name, shape, dtype)


def read_nvfp4(reader: Reader, fields: Fields) -> BundleTree | None:
    """`nvfp4_matrix`: codes, scales and one global word; `suffixes` names their tensors where a source spells otherwise."""
    suffixes = _suffixes(fields)
    place = _place(reader, fields)
    if place is None or suffixes is None:
        return None
    role, prefix, (n, k) = place
    if k % NVFP4_GROUP:
        message = f"{k} columns are not whole groups of {NVFP4_GROUP}."
        misfit(fields, "operation_shape", message, f"a multiple of {NVFP4_GROUP} columns", k)
        return None
    codes = Tensor(role, prefix + suffixes["codes"], (n, k // 2), "U8")
    scales = Tensor(role, prefix + suffixes["scales"], (n, k // NVFP4_GROUP), "F8_E4M3")
    divisor = Tensor(role, prefix + suffixes["divisor"], (1,), "F32", scalar=True)
    return BundleTree("nvfp4", (n, k), codes, scales, (PartTree(role, prefix, divisor),))


def read_fp8_rows(reader: Reader, fields: Fields) -> BundleTree | None:
    """`fp8_row_matrix`: codes, and a BF16 scale for each row."""
    place = _place(reader, fields)
    if place is None:
        return None
    role, prefix, (n, k) = place
    codes = Tensor(role, prefix + FP8_SUFFIXES["codes"], (n, k), "F8_E4M3")
    scales = Tensor(role, prefix + FP8_SUFFIXES["scales"], (n, 1), "BF16")
    return BundleTree("fp8_row", (n, k), codes, scales, (PartTree(role, prefix, None),))


def _place(reader: Reader, fields: Fields) -> tuple[str, str, tuple[int, int]] | None:
    role, shape = reader.role(fields), reader.shape(fields)
    prefix = reader.template(fields.text("prefix"), fields.path("prefix"))
    if shape is not None and not _is_matrix(shape):
        fields.wrong_value("shape", "a matrix, [rows, columns]")
        shape = None
    if role is None or prefix is None or shape is None:
        return None
    return role, prefix, (shape[0], shape[1])


def _is_matrix(shape: Shape) -> bool:
    return len(shape) == 2 and prod(shape) > 0


def _suffixes(fields: Fields) -> dict[str, str] | None:
    if "suffixes" not in fields:
        return NVFP4_SUFFIXES
    at = fields.path("suffixes")
    reader = Fields(fields.faults, fields.raw("suffixes"), at, (), tuple(NVFP4_SUFFIXES))
    found = {name: reader.text(name) if name in reader else usual for name, usual in NVFP4_SUFFIXES.items()}
    suffixes = {name: suffix for name, suffix in found.items() if suffix is not None}
    if any("{" in suffix or "}" in suffix for suffix in suffixes.values()):
        fields.wrong_value("suffixes", "suffixes without braces")
        return None
    if len(suffixes) != len(NVFP4_SUFFIXES):
        return None
    if len(set(suffixes.values())) != len(suffixes):
        fields.wrong_value("suffixes", "three different suffixes")
        return None
    return suffixes
