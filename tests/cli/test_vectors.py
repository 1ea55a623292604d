"""`ninfer-gate vectors` as a person runs it."""

import json
import zipfile

import pytest

from ninfer_core.selfcheck.archive import FOLDER
from tests.cli import build


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """One exported archive, under the name of its version."""
    folder = tmp_path_factory.mktemp("vectors")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = build.run("vectors", "export")
    assert done.returncode == 0, done.stderr
    assert "sha256:" in done.stdout
    (path,) = folder.iterdir()
    assert path.name == f"{FOLDER}.zip"
    return path


def test_an_archive_is_verified_and_never_overwritten(archive):
    sound = build.run("vectors", "verify", archive, "--json", "-")
    assert sound.returncode == 0, sound.stderr
    document = json.loads(sound.stdout)
    assert (document["verdict"], document["version"], document["same_as_installed"]) == ("passed", 1, True)
    again = build.run("vectors", "export", archive)
    assert again.returncode == 2
    assert "never overwritten" in again.stderr


def test_a_changed_archive_fails_and_says_where(archive, tmp_path):
    changed = tmp_path / "c.zip"
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(changed, "w") as copy:
        for member in whole.infolist():
            data = whole.read(member)
            copy.writestr(member, data.replace(b"0", b"1", 1) if "check.NVFP4" in member.filename else data)
    failed = build.run("vectors", "verify", changed)
    assert failed.returncode == 1
    assert "check.NVFP4.json" in failed.stdout


def test_no_archive_is_no_answer(tmp_path):
    none = build.run("vectors", "verify", tmp_path / "absent.zip", "--json", "-")
    assert none.returncode == 2
    assert json.loads(none.stdout)["verdict"] == "error"
