"""`ninfer-gate selfcheck` of kernels of somebody else, as a person runs it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli import build

EXAMPLE = Path(__file__).parents[2] / "examples" / "c-kernel"
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler `cc`")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with `right.so`, and `wrong.so` that divides by the scale."""
    folder = tmp_path_factory.mktemp("own")
    text = (EXAMPLE / "grouped.c").read_text()
    for name, source in (
        ("right", text),
        ("wrong", text.replace("* inverse)", "/ float_of(widen16(scale)))")),
    ):
        (folder / f"{name}.c").write_text(source)
        subprocess.run(
            [
                *("cc", "-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-shared"),
                *("-o", folder / f"{name}.so", folder / f"{name}.c", "-I", EXAMPLE, "-lm"),
            ],
            check=True,
        )
    return folder


def test_a_right_library_passes_in_the_same_document(folder):
    done = build.run("selfcheck", "--library", folder / "right.so", "--only", "*W8*", "--json", "-")
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert (document["schema"], document["outcome"]) == ("ninfer-gate/selfcheck/1", "passed")
    assert document["device"]["name"] == "foreign"
    assert len(document["kernels"]) == 6


def test_a_wrong_library_fails_and_the_kernel_and_the_place_are_named(folder):
    done = build.run("selfcheck", "--library", folder / "wrong.so", "--only", "encode.Q4*.F32.foreign")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "encode.Q4G64_F16S.F32.foreign" in done.stdout
    assert "code at row" in done.stdout
    assert "compiler not known" not in done.stdout


def test_what_is_not_offered_is_shown_and_may_be_required(folder):
    asked = ("selfcheck", "--library", folder / "right.so", "--only", "reconstruct.[NW]*")
    done = build.run(*asked)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not offered: reconstruct NVFP4 (FP32, BF16)" in done.stdout
    done = build.run(*asked, "--require", "*W8*", "--require", "*NVFP4*FP32*")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "required and not offered: reconstruct.NVFP4.FP32.foreign" in done.stdout
    done = build.run("selfcheck", "--require", "*")
    assert done.returncode == 2


def test_what_cannot_be_checked_is_no_answer(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "broken.py").write_text("import nothing_of_this_name\n")
    for said, *options in (
        ("one at a time", "--library", "right.so", "--kernels", "a:b"),
        ("nothing_of_this_name", "--kernels", "broken:x"),
    ):
        done = build.run("selfcheck", *options)
        assert done.returncode == 2, done.stdout
        assert said in done.stderr
        assert "Traceback" not in done.stderr
