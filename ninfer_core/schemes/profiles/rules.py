"""What words may stand in a payload of a profile: scales, digits, indices, outliers and padding (value rules)."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes.bits import codes_of, digits_of, spare_bytes
from ninfer_core.schemes.faults import report, report_not_finite
from ninfer_core.schemes.form import Shape
from ninfer_core.schemes.profiles.decode_blocks import blocks_place, indices
from ninfer_core.schemes.profiles.decode_floats import floating_point
from ninfer_core.schemes.profiles.kinds import leaf_of, runs
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
    ZeroField,
)
from ninfer_core.schemes.profiles.ops import ArrayOps
from ninfer_core.schemes.profiles.pieces import stream_bytes
from ninfer_core.schemes.profiles.place import Place, root_place
from ninfer_core.schemes.profiles.tiles import cut
from ninfer_core.schemes.profiles.translate import translate
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.view import LeafArray, Payload, view

Words = NDArray[Any]


def check_words(quantization: Quantization, payload: Payload, shape: Shape, findings: Findings) -> None:
    """Every finding about the words of a payload of the translated type. Total over any words.

    Raises: StructFault, SchemeRefused, for a payload or a profile that does not fit the shape.
    """
    declared = translate(quantization, shape)
    leaves = view(declared, payload)
    _Rules(quantization.name, leaves, findings).level(quantization, shape, root_place(declared))
    for leaf in leaves:
        name = leaf.plan.path.split(".")[-2:]
        if len(name) == 2 and name[1] == "zero" and name[0].startswith("padding"):
            _padding(findings, leaf.plan.path, leaf.words)


def _padding(findings: Findings, path: str, words: Words) -> None:
    report(findings, "padding_nonzero", path, words != 0, words, "holds no value and is not zero", 0)


class _Rules:
    def __init__(self, name: str, leaves: tuple[LeafArray, ...], findings: Findings) -> None:
        self._leaves = {leaf.plan.path: leaf for leaf in leaves}
        self._ops = ArrayOps(name, leaves)
        self._findings = findings

    def level(self, quantization: Quantization, shape: Shape, place: Place) -> None:
        """The rules of one level and of those below."""
        kind, count = quantization.kind, math.prod(shape)
        if isinstance(getattr(kind, "scale", None), ScaleField):
            self._finite("scale_not_finite", place.leaf("scale"))
        if isinstance(getattr(kind, "zero_point", None), ZeroField):
            self._finite("value_not_finite", place.leaf("zero_point"))
        match kind:
            case Linear() if LEAVES[leaf_of(kind)].kind == "float":
                self._finite("value_not_finite", place.leaf("values"))
            case Linear() if LEAVES[leaf_of(kind)].bits != kind.bits:
                self._spare(place.leaf("values"), kind.bits, count)
            case Codebook():
                self._indices(kind, shape, place)
            case FloatingPoint(carrier="native"):
                self._finite("value_not_finite", place.leaf("values"))
            case FloatingPoint():
                if kind.carrier == "bytes":
                    self._spare(place.leaf("values"), kind.bits, count)
                if kind.has_inf or kind.has_nan:
                    values = floating_point(self._ops, replace(kind, scale=None), shape, place)
                    report_not_finite(self._findings, "value_not_finite", place.path or "values", values)
            case Sparse():
                self.level(kind.base, shape, place.below("base"))
                self._outliers(kind, count, place)
            case Log():
                if kind.bits not in (2, 4, 8, 16):
                    self._spare(place.leaf("codes"), kind.bits, count)
                if kind.has_sign:
                    self._spare(place.leaf("signs"), 1, count)
            case Cast():
                self._finite("value_not_finite", place.path)
            case StructuredBlock():
                self._block(kind, shape, place)
            case Tiling(stacked=False):
                self._tiles(kind, shape, place)

    def _tiles(self, kind: Tiling, shape: Shape, place: Place) -> None:
        tiles = cut(kind, shape)
        if len(kind.elem_quant) == 1:
            self.level(kind.elem_quant[0], tiles.tile, place.below(kind.field, *tiles.dims))
            return
        for number, (index, count) in enumerate(runs(tiles.count, len(kind.elem_quant))):
            self.level(kind.elem_quant[index], tiles.tile, place.below(f"{kind.field}_{number}", count))

    def _finite(self, slug: str, path: str) -> None:
        leaf = self._leaves[path]
        if leaf.plan.element.kind == "float":
            beyond, expected = ~np.isfinite(numbers_of(leaf)), "a finite number"
            report(
                self._findings,
                slug,
                path or "values",
                beyond,
                leaf.words,
                "holds NaN or infinity",
                expected,
            )

    def _spare(self, path: str, bits: int, count: int) -> None:
        words = self._leaves[path].array
        if words.size:
            flat = words.reshape(-1, stream_bytes(count, bits))
            _padding(self._findings, path, spare_bytes(flat, bits, count))

    def _indices(self, kind: Codebook, shape: Shape, place: Place) -> None:
        path = place.leaf("indices")
        words, outer = self._leaves[path].array, place.batch
        count = math.prod(shape) // kind.vector * kind.books
        if kind.index_bits:
            flat = words.reshape(*outer, stream_bytes(count, kind.index_bits))
            self._range(path, codes_of(flat, kind.index_bits, count), kind.entries)
            _padding(self._findings, path, spare_bytes(flat, kind.index_bits, count))
            return
        size, digits = kind.packed_bytes or 1, kind.packed_count or 1
        units = -(-count // digits)
        values, illegal = digits_of(words.reshape(*outer, units, size), kind.entries, digits)
        low = words.reshape(*outer, units, size)[..., 0]
        expected = f"up to {kind.entries**digits - 1}"
        report(self._findings, "byte_illegal", path, illegal, low, "is no packing of digits", expected)
        _padding(self._findings, path, values.reshape(*outer, units * digits)[..., count:])

    def _range(self, path: str, found: Words, limit: int) -> None:
        beyond, expected = (found < 0) | (found >= limit), f"0 to {limit - 1}"
        report(
            self._findings, "index_out_of_range", path, beyond, found, "points outside", expected, limit=limit
        )

    def _outliers(self, kind: Sparse, count: int, place: Place) -> None:
        prefix = "outlier_" if kind.prefixed else ""
        path = place.leaf(f"{prefix}indices")
        found = self._leaves[path].array
        self._range(path, found, count)
        falls = np.zeros(found.shape, np.bool_)
        falls[1:] = found[1:] <= found[:-1]
        report(
            self._findings,
            "outliers_out_of_order",
            path,
            falls,
            found,
            "does not rise",
            "strictly increasing",
        )
        self._finite("value_not_finite", place.leaf(f"{prefix}values"))

    def _block(self, kind: StructuredBlock, shape: Shape, place: Place) -> None:
        at = blocks_place(kind, shape, place)
        for role in ("SCALE", "VALUES", "ZERO_POINT", "BIAS"):
            field = kind.layout.of(role)
            if field is not None:
                slug = "scale_not_finite" if role == "SCALE" else "value_not_finite"
                self._finite(slug, at.leaf(field.name))
        if kind.codebook_data:
            found = indices(self._ops, kind, place, at)
            self._range(at.leaf("index"), found, len(kind.codebook_data) // kind.codebook_vector_size)
