"""The same words, counts and sums from code for any x86-64, for AVX2 and for AVX-512, in processes of their own."""

import json
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from llvmlite import binding

from tests.kernels import cpu_path

ROOT = Path(__file__).resolve().parents[2]
PATHS = {"baseline": ("x86-64", ""), "avx2": ("x86-64-v3", "+avx2,+bmi,+bmi2,+fma")}
HOST = binding.get_host_cpu_features()


def run(path):
    """In a process whose compiler makes code for `path`; its cache tells processors apart."""
    model, features = PATHS[path]
    environment = {
        **os.environ,
        "NUMBA_CPU_NAME": model,
        "NUMBA_CPU_FEATURES": features,
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "tests.kernels.cpu_path"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the paths are those of x86-64")
def test_every_path_gives_the_same():
    """This process runs what the machine has, AVX-512 where it can."""
    paths = [path for path in PATHS if path == "baseline" or HOST.get(path)]
    with ThreadPoolExecutor(2) as pool:
        others = dict(zip(paths, pool.map(run, paths), strict=True))
    own = cpu_path.answers()
    assert bool(HOST.get("avx512f")) == ("+avx512f" in own["features"])
    for path, one in others.items():
        assert one["features"] == PATHS[path][1]  # the code really was made for it
        assert one["digest"] == own["digest"], path
