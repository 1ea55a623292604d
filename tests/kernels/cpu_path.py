"""What CPU kernels make of fixed blocks, as digests by operation, and the compiler's features; as JSON when run as a program.

A program, since the compiler takes its processor from the environment once. What it is given as the encoding of the
source is read from a file, so that a path compiles only the kernels that it is asked about.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from numba.core.registry import cpu_target

from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, Q5G64_F16S
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import CodeStatistics, GroupedPlanes

FORMAT, COLUMNS = Q5G64_F16S, 5_000


def source():
    """BF16 words of many magnitudes; a group of zeros, and groups under subnormal scales."""
    seed = np.random.default_rng(20)
    spread = 2.0 ** seed.integers(-30, 4, (9, 1))
    values = (seed.standard_normal((9, COLUMNS)) * spread).astype(np.float32)
    words = (values.view(np.uint32) >> 16).astype(np.uint16)
    words[1, :64] = 0
    words[2, :640] &= 0x807F
    return words


def encoding():
    planes = GroupedPlanes.empty(FORMAT, 9, COLUMNS)
    return planes, cpu.encode(FORMAT, source(), "BF16", planes)


def encode(_):
    planes, counts = encoding()
    return counts, planes.base, planes.high, planes.scales


def scan(planes):
    scales = planes.scales.copy()
    scales[70] = 0
    return cpu.scan_grouped(FORMAT, COLUMNS, GroupedPlanes(planes.base, planes.high, scales))


def statistics(planes):
    acc = CodeStatistics.empty(FORMAT)
    cpu.statistics_grouped(FORMAT, COLUMNS, planes, acc)
    return acc.histogram, acc.tallies


def sums(planes):
    return cpu.error_sums_grouped(FORMAT, COLUMNS, planes, source(), "BF16")


def parity(planes):
    """The encoder, the comparison and the sums in one pass; it answers only where the words are the encoding."""
    found = cpu.parity_grouped(FORMAT, COLUMNS, planes, source(), "BF16")
    assert found is not None
    return found


def reconstruct(planes):
    out = np.empty((9, COLUMNS), np.uint16)
    cpu.reconstruct_grouped(FORMAT, COLUMNS, planes, out)
    return out


def rows(_):
    codes, scales = np.arange(9 * COLUMNS).astype(np.uint8).reshape(9, COLUMNS), source()[:, 7] & 0x7FFF
    acc, out = CodeStatistics.empty(FP8_E4M3FN_ROW_BF16S), np.empty((9, COLUMNS), np.uint16)
    cpu.statistics_row(codes, scales, acc)
    cpu.reconstruct_row(codes, scales, out)
    return acc.histogram, acc.tallies, out


OPERATIONS = {one.__name__: one for one in (encode, scan, statistics, sums, parity, reconstruct, rows)}


def answers(operations, planes):
    digests = {}
    for name in operations:
        digest, results = hashlib.sha256(), OPERATIONS[name](planes)
        for one in results if isinstance(results, tuple) else (results,):
            digest.update(one.tobytes() if isinstance(one, np.ndarray) else repr(one).encode())
        digests[name] = digest.hexdigest()
    return {"digests": digests, "features": cpu_target.target_context.codegen()._tm_features}


if __name__ == "__main__":
    with np.load(Path(sys.argv[1])) as stored:
        given = GroupedPlanes(stored["base"], stored["high"], stored["scales"])
    json.dump(answers(sys.argv[2:], given), sys.stdout)
