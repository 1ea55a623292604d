"""A lost vectorisation costs a factor of two to eight: main kernels stay below what they were measured at without.

Time over that of copying the same source, both of this thread's own processor time and the least of several turns, so
that a busy machine does not matter. `docs/performance.md` says what that refuses.
"""

import time

import numpy as np
import pytest
from llvmlite import binding

from ninfer_core.formats import Q4G64_F16S, Q6G64_F16S
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import CodeStatistics, GroupedPlanes

ROWS, COLUMNS, BUFFERS = 256, 4_096, 8
TURNS = 24
COUNTS_ONES = bool(binding.get_host_cpu_features().get("avx512vpopcntdq"))  # some three times slower without
SLOWEST = {  # kernel time over copy time: above what was measured, below what was measured with the vectoriser off
    "encode": 5.0,
    "same bytes": 3.0,
    "statistics": 5.5 if COUNTS_ONES else 16.0,
    "reconstruct32": 9.0,
    "reconstruct16": 5.0,
    "error sums": 15.0,
    "parity": 15.0,
}


def least(work):
    times = []
    for turn in range(TURNS):
        start = time.thread_time()
        work(turn % BUFFERS)
        times.append(time.thread_time() - start)
    return min(times[BUFFERS:])  # the first round compiles, and touches pages


@pytest.mark.parametrize("fmt", [Q4G64_F16S, Q6G64_F16S], ids=lambda f: f.name)
def test_kernels_keep_their_speed(fmt):
    seed = np.random.default_rng(0)
    line = (seed.standard_normal(ROWS * COLUMNS) * 0.02).astype(np.float32).view(np.uint32) >> 16
    sources = np.stack([np.roll(line, 4_097 * i) for i in range(BUFFERS)]).astype(np.uint16)
    sources = sources.reshape(BUFFERS, ROWS, COLUMNS)
    copies, wide = np.empty_like(sources), np.empty(sources.shape, np.uint32)
    planes = [GroupedPlanes.empty(fmt, ROWS, COLUMNS) for _ in range(BUFFERS)]
    acc, twins = CodeStatistics.empty(fmt), sources.copy()
    copy = least(lambda i: np.copyto(copies[i], sources[i]))
    work = {
        "encode": lambda i: cpu.encode(fmt, sources[i], "BF16", planes[i]),
        "same bytes": lambda i: cpu.same_bytes(sources[i], twins[i]),
        "statistics": lambda i: cpu.statistics_grouped(fmt, COLUMNS, planes[i], acc),
        "reconstruct32": lambda i: cpu.reconstruct_grouped(fmt, COLUMNS, planes[i], wide[i]),
        "reconstruct16": lambda i: cpu.reconstruct_grouped(fmt, COLUMNS, planes[i], copies[i]),
        "error sums": lambda i: cpu.error_sums_grouped(fmt, COLUMNS, planes[i], sources[i], "BF16"),
        "parity": lambda i: cpu.parity_grouped(fmt, COLUMNS, planes[i], sources[i], "BF16"),
    }
    ratios = {name: least(one) / copy for name, one in work.items()}
    print({name: round(ratio, 2) for name, ratio in ratios.items()})
    assert {name: ratio for name, ratio in ratios.items() if ratio > SLOWEST[name]} == {}
