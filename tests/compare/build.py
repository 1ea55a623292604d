"""Comparisons of files for tests, in this process and as workers do them; and small payloads."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ninfer_core.compare import compare, prepare
from ninfer_core.compare.comparison import Comparison, ObjectComparison
from ninfer_core.compare.outcomes import from_json, to_json
from ninfer_core.formats import DirectFormat, NumericFormat, RowFormat
from ninfer_core.layouts import canonical_layout
from ninfer_core.layouts.base import Shape
from ninfer_core.opening import open_path
from ninfer_core.verify.task import shards
from tests.build import legal_payload, write_artifact
from tests.shards import small_blocks

Payload = NDArray[np.uint8]


def run(a: Path, b: Path, workers: int | None = 1) -> Comparison:
    """The comparison of two files, all in this process."""
    with open_path(a) as left, open_path(b) as right:
        return compare(left, right, workers=workers)


def run_by_shards(a: Path, b: Path, shard_bytes: int) -> Comparison:
    """As workers do it: every shard on its own, last one first, nothing but JSON handed on."""

    def prepared(stack: ExitStack) -> Any:
        left, right = stack.enter_context(open_path(a)), stack.enter_context(open_path(b))
        return prepare((left.files, left.entry), (right.files, right.entry))

    kept: dict[int, str] = {}
    with ExitStack() as stack:
        numbers = shards(prepared(stack).tasks, shard_bytes)
    for part in reversed(numbers):
        with ExitStack() as stack:
            tasks = prepared(stack).tasks
            kept |= {n: json.dumps(to_json(tasks[n].run()), allow_nan=False) for n in part}
    with ExitStack() as stack:
        last = prepared(stack)
        return last.conclude(from_json(json.loads(kept[n])) for n in range(len(last.tasks)))


def pair(
    folder: Path,
    a: dict[str, tuple[NumericFormat, Shape, Payload]],
    b: dict[str, tuple[NumericFormat, Shape, Payload]],
    revisions: tuple[int, int] = (2, 2),
) -> tuple[Path, Path]:
    """Two files with these tensors."""
    return (
        write_artifact(folder / "a.ninfer", a, revisions[0]),
        write_artifact(folder / "b.ninfer", b, revisions[1]),
    )


def by_name(comparison: Comparison) -> dict[str, ObjectComparison]:
    """Its objects."""
    return {item.name: item for item in comparison.objects}


def finite_payload(fmt: NumericFormat, shape: Shape, rng: np.random.Generator) -> Payload:
    """Legal words that stand for moderate numbers: products overflow nowhere."""
    if isinstance(fmt, RowFormat):
        payload = legal_payload(fmt, shape, rng)
        scales = canonical_layout(fmt).planes(fmt, shape)[-1].span
        payload[scales.offset + 1 : scales.offset + scales.length : 2] &= 0x3F
        return payload
    if not isinstance(fmt, DirectFormat):
        return legal_payload(fmt, shape, rng)
    numbers = rng.normal(0, 1, shape).astype("<f4").reshape(-1)
    if fmt.name == "FP32":
        return numbers.view(np.uint8).copy()
    if fmt.name == "BF16":
        return (numbers.view("<u4") >> 16).astype("<u2").view(np.uint8).copy()
    return rng.integers(0, 1 << 32, numbers.size, np.uint32).view(np.uint8).copy()


def in_blocks(monkeypatch: pytest.MonkeyPatch, weights: int) -> None:
    """What large tensors go through, with small ones: nothing is read in one piece."""
    small_blocks(monkeypatch, weights)
    monkeypatch.setattr("ninfer_core.compare.pairs.WHOLE_BYTES", 0)
    monkeypatch.setattr("ninfer_core.compare.words.BLOCK_WEIGHTS", weights)
