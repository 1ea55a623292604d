"""Plans of one object over values in memory, and its payload as `convert` would write it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.containers.directory import TensorObject
from ninfer_core.derive import Derivation, Derived
from ninfer_core.formats import NumericFormat
from ninfer_core.layouts import canonical_layout
from ninfer_core.layouts.base import BLOCK_WEIGHTS, Block
from ninfer_core.recipes.bundles import Bundle, Part
from ninfer_core.recipes.plan import TensorPlan
from ninfer_core.recipes.producers import Bound, Producer
from ninfer_core.verify.faults import Fault, merge
from ninfer_core.verify.parity import Comparison, compare_block

FP8 = "MAXABS_BF16S_RECIP_E4M3FN_RNE_V1"
GROUPED = "MAXABS_F16_RECIP_RNE_V1"


class Held:
    """A value in memory that counts what is read of it."""

    def __init__(self, words: NDArray[Any], dtype: str) -> None:
        self.words, self.dtype, self.shape = words, dtype, words.shape
        self.read_words = 0

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """See `Value.read`."""
        self.read_words += end - begin
        return self.words.reshape(-1)[begin:end].copy()


def plan(fmt: NumericFormat, value: Any, encode: str | None, **more: Any) -> TensorPlan:
    """The plan of one object of the value's shape."""
    return TensorPlan(
        **{
            "name": "w",
            "fmt": fmt,
            "layout": canonical_layout(fmt),
            "shape": tuple(value.shape),
            "encode": encode,
            "producer": None,
            "value": value,
            "sources": (),
            "inputs": (),
            "converted": False,
            "evidence_kind": "derived-exact",
            "claims": (),
            "rule": "$.rules[0]",
            "template": {"op": "tensor"},
            "assignment": {},
            **more,
        }
    )


def foreign(fmt: NumericFormat, value: Any, **bound: float) -> TensorPlan:
    """The same of a foreign producer with a bound."""
    producer = Producer("theirs", "1", None, Bound(**bound) if bound else None)
    return plan(fmt, value, None, producer=producer, evidence_kind="within-bound" if bound else "legal-only")


def item_of(made: TensorPlan) -> TensorObject:
    """The object as it lies in an artifact."""
    size = made.layout.encoded_size(made.fmt, made.shape)
    return TensorObject(0, made.name, made.shape, made.fmt, made.layout, 0, size)


def blocks(made: TensorPlan, weights: int = BLOCK_WEIGHTS) -> list[Block]:
    """The blocks of the object; fewer weights make more of them."""
    return list(made.layout.blocks(made.fmt, made.shape, weights))


def planes_of(made: TensorPlan, block: Block) -> list[NDArray[Any]]:
    """Fresh planes of one block."""
    derived = Derivation(made).block(block)
    assert isinstance(derived, Derived)
    return [np.array(plane) for plane in derived.planes]


def compare(made: TensorPlan, block: Block, planes: Sequence[NDArray[Any]]) -> Comparison:
    """One block against the plan."""
    return compare_block(item_of(made), block, planes, Derivation(made))


def faults_of(made: TensorPlan, block: Block, planes: Sequence[NDArray[Any]]) -> dict[str, Fault]:
    """The merged faults of one block, by code."""
    return {fault.code: fault for fault in merge(compare(made, block, planes).faults)}


def nvfp4_bundle(rng: np.random.Generator, n: int, k: int, source_word: int | None = None) -> Bundle:
    """Legal words; with a `source_word` the divisor is not the word that the source states."""
    codes = Held(rng.integers(0, 256, (n, k // 2), np.uint8), "U8")
    scales = Held(rng.integers(1, 0x7F, (n, k // 16), np.uint8), "F8_E4M3")
    word = 0x41000000
    part = Part("base", "w", word if source_word is None else source_word, word)
    return Bundle("nvfp4", (n, k), codes, scales, Held(np.array([word], np.uint32), "F32"), (part,))


def fp8_bundle(rng: np.random.Generator, n: int, k: int) -> Bundle:
    """Legal words."""
    codes = rng.integers(0, 0x7F, (n, k), np.uint8) | rng.integers(0, 2, (n, k), np.uint8) << 7
    scales = rng.integers(1, 0x7F80, (n, 1), np.uint16)
    part = Part("base", "w", None, None)
    return Bundle("fp8_row", (n, k), Held(codes, "F8_E4M3"), Held(scales, "BF16"), None, (part,))


def bf16(values: NDArray[Any]) -> NDArray[np.uint16]:
    """The upper halves of binary32 words."""
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
