"""What every CPU kernel makes of fixed blocks, as one digest, and the compiler's features; as JSON when run as a program.

A program, since the compiler takes its processor from the environment once. One type of source: each is compiled afresh.
"""

import hashlib
import json
import sys

import numpy as np
from numba.core.registry import cpu_target

from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, NVFP4, Q5G64_F16S, Q6G64_F16S, W8G32_F16S
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import CodeStatistics, GroupedPlanes


def answers():
    seed = np.random.default_rng(20)
    digest = hashlib.sha256()
    spread = 2.0 ** seed.integers(-30, 4, (9, 1))
    source = ((seed.standard_normal((9, 5_000)) * spread).astype(np.float32).view(np.uint32) >> 16).astype(
        np.uint16
    )
    source[1, :64] = 0
    source[2, :640] &= 0x807F  # subnormal

    def take(*results):
        for one in results:
            digest.update(one.tobytes() if isinstance(one, np.ndarray) else repr(one).encode())

    for fmt in (Q5G64_F16S, Q6G64_F16S, W8G32_F16S):
        planes, acc = GroupedPlanes.empty(fmt, *source.shape), CodeStatistics.empty(fmt)
        take(cpu.encode(fmt, source, "BF16", planes), planes.base, planes.high, planes.scales)
        take(cpu.scan_grouped(fmt, 5_000, planes))
        cpu.statistics_grouped(fmt, 5_000, planes, acc)
        take(acc.histogram, acc.tallies)
        take(cpu.error_sums_grouped(fmt, 5_000, planes, source, "BF16"))
        assert cpu.parity_grouped(fmt, 5_000, planes, source, "BF16") is not None
        take(cpu.parity_grouped(fmt, 5_000, planes, source, "BF16"))
        for width in (np.uint32, np.uint16):
            out = np.empty(source.shape, width)
            cpu.reconstruct_grouped(fmt, 5_000, planes, out)
            take(out)
    codes, row_scales = np.empty(source.size, np.uint8), np.empty(9, np.uint16)
    largest = cpu.largest_magnitudes(source, "BF16")
    take(cpu.encode_rows(source, "BF16", largest, codes, row_scales), codes, row_scales)
    codes = codes.reshape(source.shape)
    acc = CodeStatistics.empty(FP8_E4M3FN_ROW_BF16S)
    cpu.statistics_row(codes, row_scales, acc)
    take(cpu.scan_row(codes, row_scales), acc.histogram, acc.tallies, cpu.statistics_direct(source, "BF16"))
    out = np.empty(source.shape, np.uint16)
    cpu.reconstruct_row(codes, row_scales, out)
    take(out)
    nibbles = seed.integers(0, 256, (128, 64), dtype=np.uint8)
    scales = seed.integers(0, 0x7F, (128, 8), dtype=np.uint8)
    acc = CodeStatistics.empty(NVFP4)
    cpu.statistics_nvfp4(nibbles, scales, acc)
    values = np.empty((128, 128), np.uint32)
    cpu.reconstruct_nvfp4(nibbles, scales, 0x43C80000, values)
    take(cpu.scan_block_scales(scales), acc.histogram, acc.tallies, values)
    return {"digest": digest.hexdigest(), "features": cpu_target.target_context.codegen()._tm_features}


if __name__ == "__main__":
    json.dump(answers(), sys.stdout)
