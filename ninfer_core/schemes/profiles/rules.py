"""What words may stand in a payload of a profile: scales, digits, indices, outliers and padding (value rules)."""

import math

import numpy as np

from ninfer_core.findings import Findings
from ninfer_core.schemes.bits import codes_of, digits_of, spare_bytes
from ninfer_core.schemes.faults import report, report_not_finite
from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.kinds import leaf_of
from ninfer_core.schemes.profiles.leaf_values import numbers_of
from ninfer_core.schemes.profiles.model import (
    Cast,
    Codebook,
    FloatingPoint,
    Linear,
    Log,
    Quantization,
    ScaleField,
    Sparse,
    StructuredBlock,
    Tiling,
)
from ninfer_core.schemes.profiles.pieces import stream_bytes
from ninfer_core.schemes.profiles.tiles import cut
from ninfer_core.schemes.profiles.translate import translate
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.view import LeafArray, Payload, view


def check_words(quantization: Quantization, payload: Payload, shape: Shape, findings: Findings) -> None:
    """Every finding about the words of a payload of the translated type. Total over any words."""
    declared = translate(quantization, shape)
    leaves = {leaf.plan.path: leaf for leaf in view(declared, payload)}
    _Rules(leaves, findings).level(quantization, shape, "")
    for path, leaf in leaves.items():
        name = path.split(".")[-2:]
        if len(name) == 2 and name[1] == "zero" and name[0].startswith("padding"):
            _padding(findings, path, leaf.words)


def _padding(findings: Findings, path: str, words: np.ndarray) -> None:
    report(findings, "padding_nonzero", path, words != 0, words, "holds no value and is not zero", 0)


class _Rules:
    def __init__(self, leaves: dict[str, LeafArray], findings: Findings) -> None:
        self._leaves = leaves
        self._findings = findings

    def level(self, quantization: Quantization, shape: Shape, path: str) -> None:
        """The rules of one level and of those below."""
        kind = quantization.kind
        at = f"{path}." if path else ""
        if isinstance(getattr(kind, "scale", None), ScaleField):
            self._finite("scale_not_finite", f"{at}scale")
        match kind:
            case Linear() if LEAVES[leaf_of(kind)].kind == "float":
                self._finite("value_not_finite", f"{at}values")
            case Linear() if leaf_of(kind) == "UINT8" and kind.bits < 8:
                self._spare(f"{at}values", kind.bits, math.prod(shape))
            case Codebook():
                self._indices(kind, shape, f"{at}indices")
            case FloatingPoint(carrier="bytes"):
                self._spare(f"{at}values", kind.bits, math.prod(shape))
            case FloatingPoint(carrier="native"):
                self._finite("value_not_finite", f"{at}values")
            case Sparse():
                self.level(kind.base, shape, f"{at}base")
                self._outliers(kind, shape, f"{at}outlier_" if kind.prefixed else at)
            case Log(has_sign=True):
                self._spare(f"{at}signs", 1, math.prod(shape))
            case Cast():
                self._finite("value_not_finite", path)
            case StructuredBlock():
                self._block(
                    kind, f"{at}blocks." if not kind.bare and kind.storage_order != "SEQUENTIAL" else at
                )
            case Tiling(stacked=False):
                tile = cut(kind, shape).tile
                alone = len(kind.elem_quant) == 1
                for number, name in enumerate([kind.field] if alone else self._fields(at + kind.field)):
                    element = kind.elem_quant[number % len(kind.elem_quant)]
                    self.level(element, tile, f"{at}{name}")

    def _fields(self, prefix: str) -> list[str]:
        name = prefix.rpartition(".")[2]
        return [
            f"{name}_{number}"
            for number in sorted(
                {
                    int(path[len(prefix) + 1 :].split(".")[0])
                    for path in self._leaves
                    if path.startswith(f"{prefix}_") and path[len(prefix) + 1 :].split(".")[0].isdigit()
                }
            )
        ]

    def _finite(self, slug: str, path: str) -> None:
        leaf = self._leaves[path]
        if leaf.plan.element.kind == "float":
            report_not_finite(self._findings, slug, path or "values", numbers_of(leaf))

    def _spare(self, path: str, bits: int, count: int) -> None:
        words = self._leaves[path].array
        if words.size and stream_bytes(count, bits) == words.shape[-1]:
            spare = spare_bytes(words, bits, count)
            _padding(self._findings, path, spare)

    def _indices(self, kind: Codebook, shape: Shape, path: str) -> None:
        words = self._leaves[path].array
        count = math.prod(shape) // kind.vector * kind.books
        if kind.index_bits:
            flat = words.reshape(*words.shape[: words.ndim - (2 if words.shape[-1:] == (kind.books,) and kind.books > 1 and kind.index_bits == 8 else 1)], -1)  # fmt: skip
            found = codes_of(flat, kind.index_bits, count)
            self._range(path, found, kind.entries)
            _padding(self._findings, path, spare_bytes(flat, kind.index_bits, count))
            return
        size, digits = kind.packed_bytes or 1, kind.packed_count or 1
        units = words.reshape(*words.shape[:-1], -1, size)
        values, illegal = digits_of(units, kind.entries, digits)
        expected = f"up to {kind.entries**digits - 1}"
        first = units[..., 0]
        report(self._findings, "byte_illegal", path, illegal, first, "is no packing of digits", expected)
        joined = values.reshape(*values.shape[:-2], -1)
        _padding(self._findings, path, joined[..., count:])

    def _range(self, path: str, found: np.ndarray, limit: int) -> None:
        report(
            self._findings, "index_out_of_range", path, found >= limit, found, "points outside",
            f"0 to {limit - 1}", limit=limit,
        )  # fmt: skip

    def _outliers(self, kind: Sparse, shape: Shape, prefix: str) -> None:
        path = f"{prefix}indices"
        indices, count = self._leaves[path].array, math.prod(shape)
        beyond = (indices < 0) | (indices >= count)
        expected = f"0 to {count - 1}"
        report(
            self._findings,
            "index_out_of_range",
            path,
            beyond,
            indices,
            "points outside",
            expected,
            limit=count,
        )
        falls = np.zeros(indices.shape, np.bool_)
        falls[1:] = indices[1:] <= indices[:-1]
        report(
            self._findings,
            "outliers_out_of_order",
            path,
            falls,
            indices,
            "does not rise",
            "strictly increasing",
        )
        self._finite("value_not_finite", f"{prefix}values")

    def _block(self, kind: StructuredBlock, at: str) -> None:
        for role, slug in (("SCALE", "scale_not_finite"), ("BIAS", "value_not_finite")):
            field = kind.layout.of(role)
            if field is not None:
                self._finite(slug, f"{at}{field.name}")
