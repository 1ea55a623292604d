"""Where compiled kernels are kept, and that nothing else brings in the compiler."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from ninfer_core.kernels import cache

PROBE = (
    "import numpy as np; from ninfer_core.kernels import cpu; print(cpu.any_nonzero(np.ones(3, np.uint8)))"
)


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_kernels_are_kept_under_the_users_cache(tmp_path):
    assert run(PROBE, XDG_CACHE_HOME=str(tmp_path)) == "True"
    kept = list((tmp_path / "ninfer-gate" / f"kernels-{cache.sources_digest()[:32]}").rglob("*.nbi"))
    assert any("any_nonzero" in path.name for path in kept)


def test_an_unwritable_place_means_compiling_afresh(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert run(PROBE, XDG_CACHE_HOME=str(blocked)) == "True"


def test_the_rest_of_the_package_does_not_import_the_compiler():
    code = (
        "import sys, ninfer_core.kernels, ninfer_core.kernels.values, ninfer_core.kernels.scalar, "
        "ninfer_core.encoders.maxabs_f16, ninfer_core.reconstruct; print('numba' in sys.modules)"
    )
    assert run(code) == "False"


def test_the_compilers_own_setting_is_left_alone():
    before = numba.config.CACHE_DIR
    cache.kernel(lambda x: x)
    assert before == numba.config.CACHE_DIR


def test_a_changed_source_changes_the_digest(monkeypatch, tmp_path):
    for name in ("one.py", "other.py"):
        (tmp_path / name).write_text("")
    monkeypatch.setattr(
        cache, "source_files", lambda device_class: (tmp_path / "one.py", tmp_path / "other.py")
    )
    before = cache.sources_digest()
    (tmp_path / "other.py").write_text("# changed\n")
    assert cache.sources_digest() != before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the assembler text of x86-64")
def test_no_fused_multiply_add_is_emitted():
    """A fused instruction would skip the binary32 rounding of a product and pick other codes."""
    code = (
        "import numpy as np; from ninfer_core.formats import GROUPED; from ninfer_core.kernels import cpu, encode\n"
        "from ninfer_core.kernels.values import GroupedPlanes\n"
        "from ninfer_core.kernels import parity, reconstruct\n"
        "for fmt in GROUPED:\n"
        "    planes = GroupedPlanes.empty(fmt, 1, 128)\n"
        "    cpu.encode(fmt, np.zeros((1, 128), np.uint16), 'BF16', planes)\n"
        "    cpu.error_sums_grouped(fmt, 128, planes, np.zeros((1, 128), np.uint16), 'BF16')\n"
        "    cpu.reconstruct_grouped(fmt, 128, planes, np.zeros((1, 128), np.uint32))\n"
        "text = ''.join(t for k in (encode.encode_block, parity.grouped, reconstruct.grouped)"
        " for t in k.inspect_asm().values())\n"
        "print(len(text) > 1000, 'fmadd' in text or 'fmsub' in text or 'fnmadd' in text)"
    )
    # An unwritable cache makes the process compile, so that there is text to look at.
    assert run(code, XDG_CACHE_HOME="/dev/null") == "True False"


def test_a_person_is_told_of_the_compiling_ahead(tmp_path):
    ask = "from ninfer_core.kernels.cache import compiling_ahead; print(compiling_ahead())"
    assert "once" in run(ask, XDG_CACHE_HOME=str(tmp_path))
    run(PROBE, XDG_CACHE_HOME=str(tmp_path))
    assert run(ask, XDG_CACHE_HOME=str(tmp_path)) == "None"
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    assert "every run" in run(ask, XDG_CACHE_HOME=str(blocked))
