"""`ninfer-gate vectors` as a person runs it."""

import json
import zipfile

from ninfer_core.selfcheck.archive import FOLDER
from tests.cli import build


def test_an_archive_is_exported_verified_and_never_overwritten(tmp_path):
    path = tmp_path / "v.zip"
    done = build.run("vectors", "export", path)
    assert done.returncode == 0, done.stderr
    assert "sha256:" in done.stdout
    sound = build.run("vectors", "verify", path, "--json", "-")
    assert sound.returncode == 0, sound.stderr
    document = json.loads(sound.stdout)
    assert (document["verdict"], document["version"], document["same_as_installed"]) == ("passed", 1, True)
    again = build.run("vectors", "export", path)
    assert again.returncode == 2
    assert "never overwritten" in again.stderr


def test_a_changed_archive_fails_and_says_where(tmp_path):
    path, changed = tmp_path / "v.zip", tmp_path / "c.zip"
    build.run("vectors", "export", path)
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(changed, "w") as copy:
        for member in whole.infolist():
            data = whole.read(member)
            copy.writestr(member, data.replace(b"0", b"1", 1) if "check.NVFP4" in member.filename else data)
    failed = build.run("vectors", "verify", changed)
    assert failed.returncode == 1
    assert "check.NVFP4.json" in failed.stdout


def test_without_a_name_the_archive_is_called_by_its_version(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = build.run("vectors", "export")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [f"{FOLDER}.zip"]


def test_no_archive_is_no_answer(tmp_path):
    none = build.run("vectors", "verify", tmp_path / "absent.zip", "--json", "-")
    assert none.returncode == 2
    assert json.loads(none.stdout)["verdict"] == "error"
