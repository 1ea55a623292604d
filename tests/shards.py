"""Verification as workers do it, for tests: in shards, with nothing but JSON handed on; and blocks small enough for it."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partialmethod
from pathlib import Path

import pytest

from ninfer_core.layouts import LAYOUTS
from ninfer_core.opening import open_path
from ninfer_core.recipes import Plan
from ninfer_core.verify import asked, prepare
from ninfer_core.verify.against import Against
from ninfer_core.verify.outcomes import from_json, to_json
from ninfer_core.verify.report import Report
from ninfer_core.verify.task import Prepared, shards
from tests.build import EVERYTHING


def prepared(path: Path, against: Plan | Against | None, checks: Sequence[str], stack: ExitStack) -> Prepared:
    """A verification as `run` asks for it, its files open until `stack` ends."""
    opened = stack.enter_context(open_path(path))
    names = (*checks, "parity") if against is not None else checks
    compared = Against(against) if isinstance(against, Plan) else against
    return prepare(opened.kind, opened.files, opened.entry, asked(names), compared)


def run_by_shards(
    path: Path,
    against: Plan | Against | None = None,
    checks: Sequence[str] = EVERYTHING,
    shard_bytes: int = 1,
) -> Report:
    """Verify a file as workers do: every shard on its own, last one first, nothing but JSON handed on."""
    with ExitStack() as stack:
        plan_of_shards = shards(prepared(path, against, checks, stack).tasks, shard_bytes)
    kept: dict[int, str] = {}
    for numbers in reversed(plan_of_shards):
        with ExitStack() as stack:
            tasks = prepared(path, against, checks, stack).tasks
            kept |= {number: json.dumps(to_json(tasks[number].run()), allow_nan=False) for number in numbers}
    with ExitStack() as stack:
        last = prepared(path, against, checks, stack)
        assert len(kept) == len(last.tasks)
        return last.conclude(from_json(json.loads(kept[number])) for number in range(len(kept)))


def small_blocks(monkeypatch: pytest.MonkeyPatch, weights: int) -> None:
    """Blocks of about this many weights, and no tensor read in one piece: what large tensors go through."""
    monkeypatch.setattr("ninfer_core.verify.tensor.WHOLE_BYTES", 0)
    for layout in LAYOUTS:
        monkeypatch.setattr(type(layout), "blocks", partialmethod(type(layout).blocks, weights=weights))
