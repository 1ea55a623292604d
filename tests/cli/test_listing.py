"""`inspect`, `formats`, `explain`, `version`, and help: what is listed without reading a payload."""

import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from ninfer_core.encoders import PROFILES
from ninfer_core.findings import FINDINGS
from ninfer_core.formats import FORMATS
from ninfer_core.governance.specifications import ENCODER_TEXTS, FORMAT_TEXTS, LAYOUT_TEXTS
from ninfer_core.layouts import LAYOUTS
from ninfer_core.recipes.encoders import COPIES
from ninfer_core.recipes.restrictions import RULES, SOURCE_RULES, STORED_RULES
from service.cli import app
from service.text import clean, shorten, size
from service.wording import facts, near_names
from tests.cli import build
from tests.cli.test_verify import strict

HOSTILE = "a\x1b[2Jb\u202ec[bold]d\u2028\x9be\x07:smile:f"


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one command in this process."""
    code = app.run([*map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_inspect_lists_every_object(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "inspect", made / "good.ninfer", "--json", "-")
    document = strict(out)
    assert (code, document["verdict"], document["schema"]) == (0, "passed", "ninfer-gate/inspection/1")
    first = document["objects"][0]
    assert (first["name"], first["format"], first["shape"], first["elements"]) == (
        "matrix",
        "Q4G64_F16S",
        [6, 130],
        780,
    )
    assert first["logical_bits_per_weight"] == 4.25
    assert first["stored_bits_per_weight"] == 8 * first["bytes"] / 780
    assert document["totals"]["tensors"] == 3
    code, out, _ = run(capsys, "inspect", made / "good.ninfer", "--limit", 1)
    assert "and 2 objects more" in out
    assert "vector" not in out


def test_inspect_reads_no_payload(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "inspect", made / "bad.ninfer")[0] == 0


def test_inspect_of_what_is_broken(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.ninfer"
    path.write_bytes((made / "good.ninfer").read_bytes()[:-200])
    code, out, _ = run(capsys, "inspect", path)
    assert code == 1
    assert "structure FAILED" in out
    assert run(capsys, "inspect", path, "--json", "-")[0] == 1
    assert run(capsys, "inspect", tmp_path / "missing")[0] == 2
    code, out, _ = run(capsys, "inspect", tmp_path / "missing", "--json", "-")
    assert strict(out)["verdict"] == "error"


def test_inspect_of_safetensors(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "inspect", made / "checkpoint", "--json", "-")
    document = strict(out)
    assert (code, document["artifact"]["kind"]) == (0, "safetensors")
    assert [item["format"] for item in document["objects"]] == ["F32"] * 3
    assert [item["stored_bits_per_weight"] for item in document["objects"]] == [32.0] * 3


@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_hostile_names_are_spelled_out(
    made: Path, tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.ninfer"
    shutil.copyfile(made / "good.ninfer", path)
    build.renamed(path, "zeros", HOSTILE)
    code, out, _ = run(capsys, command, path)
    assert code == 0
    assert clean(HOSTILE) in out
    assert not set("\x1b\u202e\u2028\x9b\x07") & set(out)
    code, out, _ = run(capsys, command, path, "--json", "-")
    assert HOSTILE in [item["name"] for item in strict(out)["objects"]]


def test_clean_leaves_what_is_harmless() -> None:
    assert clean('frontend/π name "quoted".bin') == 'frontend/π name "quoted".bin'
    assert clean("\x1b\n\u202e\ud800\u200b") == "\\x1b\\n\\u202e\\ud800\\u200b"


def test_sizes_and_shortened_names() -> None:
    shown = [size(count) for count in (0, 999, 1000, 12_345, 999_499, 999_500, 17_495_365_888)]
    assert shown == ["0 B", "999 B", "1.00 kB", "12.3 kB", "999 kB", "1.00 MB", "17.5 GB"]
    assert shorten("abcdefghij", 7) == "abc…hij"
    assert shorten("abc", 7) == "abc"


def test_formats(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "formats")
    assert code == 0
    assert all(name in out for name in (*FORMATS.names, *LAYOUTS.names))
    code, out, _ = run(capsys, "formats", "--json", "-")
    bits = {entry["name"]: entry["logical_bits_per_weight"] for entry in strict(out)["formats"]}
    assert bits == {fmt.name: float(fmt.logical_bits_per_weight) for fmt in FORMATS}


def test_explain_says_what_the_registry_says(capsys: pytest.CaptureFixture[str]) -> None:
    for definition in FINDINGS:
        code, out, _ = run(capsys, "explain", definition.name)
        assert code == 0
        said = " ".join(out.split())
        assert all(" ".join(text.split()) in said for _, text in facts(definition))


@pytest.mark.parametrize(
    "name",
    [
        "NVFP4",
        "row-split-k128-v1",
        "MAXABS_F16_RECIP_RNE_V1",
        "parity",
        "Q4_K",
        "nvfp4",
        "any-rows",
        "matvec-rows",
        "encode.Q4G64_F16S.BF16.cpu",
    ],
)
def test_explain_knows_other_names(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", name)
    assert code == 0
    assert out.splitlines()[0] == name


@pytest.mark.parametrize(
    ("names", "texts"),
    [
        (PROFILES.names, ENCODER_TEXTS),
        (FORMATS.names, FORMAT_TEXTS),
        (LAYOUTS.names, LAYOUT_TEXTS),
        (COPIES, COPIES),
        (RULES, {**SOURCE_RULES, **STORED_RULES}),
    ],
)
def test_explain_shows_what_a_name_stands_for(
    names: Iterable[str], texts: Mapping[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    for name in names:
        code, out, _ = run(capsys, "explain", name)
        assert code == 0
        assert " ".join(texts[name].split()) in " ".join(out.split()), name
    assert near_names("canonical_groop_shape")[0] == "canonical_group_shape"


def test_explain_offers_near_names(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "explain", "parity.code_missmatch")
    assert (code, out) == (2, "")
    assert "parity.code_mismatch" in err
    assert near_names("encode.Q4G64_F16S.BF17.cpu")[0] == "encode.Q4G64_F16S.BF16.cpu"
    assert near_names("any-row")[0] == "any-rows"
    assert near_names("code_mismatch")[0] == "parity.code_mismatch"
    assert run(capsys, "explain", "\x1b[31m")[0] == 2


def test_version_and_help() -> None:
    assert build.run("version").stdout.startswith("ninfer-gate 0.")
    shown = build.run("--help")
    assert shown.returncode == 0
    assert all(
        name in shown.stdout for name in ("inspect", "verify", "convert", "decode", "formats", "explain")
    )
    assert build.run().returncode == 2
    assert build.run("verfy").returncode == 2
    assert "verify" in build.run("verfy").stderr


def test_a_reader_who_leaves_changes_no_verdict(made: Path) -> None:
    script = f"{build.COMMAND} verify {made / 'good.ninfer'}; echo $? >&2"
    left = subprocess.run(
        ["bash", "-c", f"{{ {script}; }} | true"], capture_output=True, text=True, timeout=60, check=False
    )
    assert left.stderr.split() == ["0"]


def test_a_terminal_that_knows_ascii_only(made: Path) -> None:
    done = build.run("verify", made / "good.ninfer", environment={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr


def test_the_python_example_of_the_readme_runs(made: Path) -> None:
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
    example = (
        readme.partition("```python\n")[2]
        .partition("```")[0]
        .replace("model.ninfer", str(made / "bad.ninfer"))
    )
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("failed sha256:")
    assert "layout." in done.stdout
