"""The emitted code of every kernel for CUDA devices: nothing fused, flushed or approximated, no index of 32 bits."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.kernels.gpu.simulator import ROOT


def test_emitted_code():
    if find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed: there is none but for Linux")
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_ENABLE_CUDASIM"}
    command = [sys.executable, "-W", "error", "-m", "tests.kernels.gpu.ptx"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    planted = {name: found.pop(name) for name in ("fused", "flushed", "cut")}
    assert planted["fused"]["inexact"] == ["fma.rn.f32"]
    assert planted["flushed"]["inexact"] == ["div.approx.ftz.f32"]
    assert planted["flushed"]["flushing"] == ["div.approx.ftz.f32"]
    assert planted["cut"]["narrow"]
    consumers = {name: found.pop(name) for name in list(found) if name.startswith("matvec")}
    assert len(consumers) == 5
    for name, told in consumers.items():
        assert (told["flushing"], told["narrow"]) == ([], []), name
    assert len(found) >= 17
    for name, told in found.items():
        assert (told["inexact"], told["narrow"]) == ([], []), name
        assert told["lines"] > 20, name
    assert all("div.rn.f32" in found[name]["divisions"] for name in ("encode 16", "encode 32"))
