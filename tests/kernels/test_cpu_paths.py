"""The same words, counts and sums from code for any x86-64, for AVX2 and for AVX-512, in processes of their own."""

import json
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding

from tests.kernels import cpu_path

ROOT = Path(__file__).resolve().parents[2]
HOST = binding.get_host_cpu_features()
# Each path compiles afresh where nothing is cached, so each is asked about what its instructions change most: the first
# counts and compares without them, the second could fuse a product and a sum.
PATHS = {
    "baseline": ("x86-64", "", ("statistics", "scan", "reconstruct", "parity")),
    "avx2": ("x86-64-v3", "+avx2,+bmi,+bmi2,+fma", ("encode", "sums", "parity", "rows")),
}


def run(path, planes):
    """In a process whose compiler makes code for `path`; its cache tells processors apart."""
    model, features, operations = PATHS[path]
    environment = {
        **os.environ,
        "NUMBA_CPU_NAME": model,
        "NUMBA_CPU_FEATURES": features,
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "tests.kernels.cpu_path", str(planes), *operations]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the paths are those of x86-64")
def test_every_path_gives_the_same(tmp_path):
    """This process runs what the machine has, AVX-512 where it can."""
    planes, _ = cpu_path.encoding()
    np.savez(tmp_path / "planes.npz", base=planes.base, high=planes.high, scales=planes.scales)
    paths = [path for path in PATHS if path == "baseline" or HOST.get(path)]
    with ThreadPoolExecutor(2) as pool:
        others = dict(
            zip(paths, pool.map(lambda path: run(path, tmp_path / "planes.npz"), paths), strict=True)
        )
    own = cpu_path.answers(cpu_path.OPERATIONS, planes)
    assert bool(HOST.get("avx512f")) == ("+avx512f" in own["features"])
    for path, one in others.items():
        assert one["features"] == PATHS[path][1]  # the code really was made for it
        assert one["digests"] == {name: own["digests"][name] for name in PATHS[path][2]}, path
