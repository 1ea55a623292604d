"""The part of the source preflight that reads whole tensors (check catalogue E3), as tasks for whoever has the time."""

from functools import partial
from math import prod
from typing import Final

import numpy as np

from ninfer_core import strict_json
from ninfer_core.errors import CutShort
from ninfer_core.file_findings import report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.recipes.crosschecks import EqualSourceTensors
from ninfer_core.recipes.plan import Plan
from ninfer_core.sources.dtypes import DTYPES
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.task import Task

PIECE_WORDS: Final = 1 << 21


def source_tasks(plan: Plan, pool: Pool) -> list[Task[[], Findings]]:
    """One task for every pair of source tensors that must hold the same words (E3); memory is bounded by a piece.

    The findings are about the source. Raises, when run: Stopped, CannotRead.
    """
    tasks = []
    for check in plan.recipe.cross_checks:
        if isinstance(check, EqualSourceTensors):
            for name in check.names:
                stored = plan.checkpoints[check.left].tensors[name]
                size = 2 * prod(stored.shape) * DTYPES[stored.dtype].bits // 8
                tasks.append(Task(size, partial(_compare_words, plan, check, name, pool)))
    return tasks


def _compare_words(plan: Plan, check: EqualSourceTensors, name: str, pool: Pool) -> Findings:
    findings = Findings()
    left, right = plan.checkpoints[check.left], plan.checkpoints[check.right]
    size = prod(left.tensors[name].shape)
    differing, first, words = 0, 0, (0, 0)
    try:
        for begin in range(0, size, PIECE_WORDS):
            pool.check()
            end = min(size, begin + PIECE_WORDS)
            here, there = (c.read_words(c.tensors[name], begin, end) for c in (left, right))
            wrong = np.flatnonzero(here != there)
            if wrong.size and not differing:
                place = int(wrong[0])
                first, words = begin + place, (int(here[place]), int(there[place]))
            differing += int(wrong.size)
    except CutShort as cut:
        report_cut_short(cut, findings, about="source")
        return findings
    if differing:
        digits = DTYPES[check.dtype].bits // 4
        have, want = (f"0x{word:0{digits}x}" for word in reversed(words))
        findings.add(
            "source.tensors_differ",
            f"{strict_json.show(name)}: {differing:,} words of {check.left} and {check.right} differ, first element {first:,}.",
            where={
                "roles": [check.left, check.right],
                "tensor": name,
                "index": first,
                "check": check.path,
            },
            expected=want,
            found=have,
            count=differing,
        )
    findings.blame("source")
    return findings
