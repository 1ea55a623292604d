"""Quantized source matrices: codes and scales of one matrix, moved together and never apart.

A row operation on a bundle is the same operation on the plain trees of its components, so that nothing but them is
ever evaluated.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from ninfer_core.layouts.base import Shape
from ninfer_core.recipes.nodes import Node, Tensor, leaves
from ninfer_core.recipes.values import Value

BundleKind = Literal["nvfp4", "fp8_row"]

NVFP4_GROUP = 16  # columns under one scale
NVFP4_SUFFIXES = {"codes": ".weight_packed", "scales": ".weight_scale", "divisor": ".weight_global_scale"}
FP8_SUFFIXES = {"codes": ".weight", "scales": ".weight_scale"}


@dataclass(frozen=True, slots=True)
class PartTree:
    """One source matrix of a bundle: `prefix` is a template, `divisor` the tree of its word (NVFP4 only)."""

    role: str
    prefix: str
    divisor: Node | None


@dataclass(frozen=True, slots=True)
class BundleTree:
    """A quantized matrix as a recipe states it; `codes` and `scales` are plain trees, `shape` is [N, K]."""

    kind: BundleKind
    shape: Shape
    codes: Node
    scales: Node
    parts: tuple[PartTree, ...]

    @property
    def leaves(self) -> tuple[Tensor, ...]:
        """Every source tensor, those of one prefix together as far as moves allow."""
        divisors = [part.divisor for part in self.parts if part.divisor is not None]
        return (
            *leaves(self.codes),
            *leaves(self.scales),
            *(leaf for node in divisors for leaf in leaves(node)),
        )

    def moved(self, move: Callable[[Node], Node]) -> "BundleTree":
        """The same row operation on codes and on scales."""
        codes, scales = move(self.codes), move(self.scales)
        return replace(self, shape=(codes.shape[0], self.shape[1]), codes=codes, scales=scales)


Tree = Node | BundleTree


@dataclass(frozen=True, slots=True)
class Part:
    """One source matrix that went into a bundle.

    `source_word` is the binary32 word that the checkpoint holds beside it, `divisor_word` what the recipe makes of it;
    they differ where the source states a multiplier. Both are None for `fp8_row`.
    """

    role: str
    prefix: str
    source_word: int | None
    divisor_word: int | None


@dataclass(frozen=True, slots=True)
class Bundle:
    """A quantized matrix [N, K], its components read in ranges like any value.

    NVFP4: `codes` U8 [N, K/2], the low nibble the even column; `scales` F8_E4M3 [N, K/16]; `divisor` one F32 word, equal
    in all parts. FP8 rows: `codes` F8_E4M3 [N, K]; `scales` BF16 [N, 1]; no divisor.
    """

    kind: BundleKind
    shape: Shape
    codes: Value
    scales: Value
    divisor: Value | None
    parts: tuple[Part, ...]

    @property
    def codes_per_row(self) -> int:
        """Words of `codes` in one row."""
        return self.codes.shape[1]
