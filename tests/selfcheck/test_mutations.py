"""A planted fault of each class, in a copy of the kernels' sources, is caught, and kernel and first mismatch are named."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import ninfer_core
from ninfer_core.kernels.registry import KERNELS

PACKAGE = Path(ninfer_core.__file__).parent
PROGRAM = Path(__file__).with_name("mutated.py")


@dataclass(frozen=True)
class Mutation:
    """One fault: what the right source says, what the wrong one says, and where the wrong answer is expected."""

    kernel: str
    module: str
    right: str
    wrong: str
    where: str  # how the place of the first mismatch begins
    level: str = ""


# Each fault is confined to one kernel, so that one copy, compiled once, holds all of them.
MUTATIONS = {
    "division for reciprocal": Mutation(
        "encode.Q4G64_F16S.F32.cpu",
        "encode.py",
        "                codes_of(values, inverse, group, lines, codes)\n",
        "                codes_of(values, inverse, group, lines, codes)\n"
        "                for i in range(lanes if bits == 4 else 0):\n"
        "                    if wide[i // group] != 0:\n"
        "                        codes[i] = np.int8(np.rint(values[i] / wide[i // group]))\n",
        "code at row",
    ),
    "fused multiply-add": Mutation(
        "encode.Q5G64_F16S.F32.cpu",
        "encode.py",
        "            if holds_subnormal(own):\n",
        "            for i in range(lanes if bits == 5 else 0):  # one rounding of the exact product\n"
        "                codes[i] = np.int8(np.rint(np.float64(values[i]) * np.float64(inverse[i // group])))\n"
        "            if holds_subnormal(own):\n",
        "code at row",
    ),
    "swapped nibbles": Mutation(
        "encode.Q6G64_F16S.F32.cpu",
        "encode.py",
        "            pack(bits, codes, line, lines, base, high)\n",
        "            pack(bits, codes, line, lines, base, high)\n"
        "            for i in range(line * 64, (line + lines * (bits == 6)) * 64):\n"
        "                base[i] = np.uint8(base[i] << 4 | base[i] >> 4)\n",
        "code at row",
    ),
    "off-by-one tail": Mutation(
        "encode.W8G32_F16S.F32.cpu",
        "encode.py",
        "                load(kind, source, start, lanes, lines, words)\n                largest",
        "                short = bits == 8 and lanes % LINE != 0\n"
        "                load(kind, source, start, lanes - short, lines, words)\n                largest",
        "scale at row",
    ),
    "flush to zero": Mutation(
        "reconstruct.Q4G64_F16S.FP32.cpu",
        "tiles.py",
        "            word = np.uint32(binary32_of_binary16(np.int32(own[i])))\n            words[2 * i] = word\n",
        "            word = np.uint32(binary32_of_binary16(np.int32(own[i])) if own[i] >= 0x400 else 0)\n"
        "            words[2 * i] = word\n",
        "weight at row",
    ),
    "wrong swizzle": Mutation(
        "matvec.NVFP4.BF16.cpu",
        "matvec.py",
        "row % 32 * 16 + row % 128 // 32 * 4",
        "row % 128 // 4 * 16 + row % 4 * 4",
        "output at row",
    ),
    "32-bit index": Mutation(
        "check.W8G32_F16S.cpu",
        "scan.py",
        "        first = row * physical\n",
        "        first = np.int64(np.int32(row * physical * group)) // group\n",
        "mask",
        "full",
    ),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What a self-check of the mutated copy says, by kernel."""
    folder = tmp_path_factory.mktemp("mutated")
    copy = folder / "ninfer_core"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, mutation in MUTATIONS.items():
        path = copy / "kernels" / mutation.module
        source = path.read_text(encoding="utf-8")
        assert source.count(mutation.right) == 1, name
        path.write_text(source.replace(mutation.right, mutation.wrong), encoding="utf-8")
    # What is compiled once and is to be wrong need not be fast.
    own = {"PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "NUMBA_OPT": "1"}
    environment = {**os.environ, **own}
    names = [f"{one.level}:{one.kernel}" if one.level else one.kernel for one in MUTATIONS.values()]
    run = subprocess.run(
        [sys.executable, str(PROGRAM), str(copy), *names],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return {result["kernel"]: result for result in json.loads(run.stdout)}


@pytest.mark.parametrize("fault", MUTATIONS)
def test_a_planted_fault_is_caught(fault: str, found: dict[str, dict[str, Any]]) -> None:
    mutation = MUTATIONS[fault]
    result = found[mutation.kernel]
    assert result["outcome"] == "failed", result
    assert result["mismatches"] > 0
    first = result["first_mismatch"]
    assert first["where"].startswith(mutation.where), first
    assert first["expected"] != first["found"]
    if mutation.level:
        assert first["case"] == "beyond 2**31 elements"
    # Other sources, other evidence.
    assert result["kernel_digest"] != KERNELS[mutation.kernel].digest
