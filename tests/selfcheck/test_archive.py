"""The archive: the same bytes everywhere, every change of it seen, nothing believed of a foreign one."""

import hashlib
import json
import subprocess
import zipfile
from io import BytesIO

import pytest

from ninfer_core.errors import CannotRead, NameTaken
from ninfer_core.selfcheck import archive, vectors
from ninfer_core.selfcheck.vectors import MANIFEST, ORIGIN, SCHEMA
from ninfer_core.selfcheck.vectors.reading import read_cases


def written(tmp_path, files):
    """An archive of `files`, with sums that go with them."""
    path = tmp_path / "changed.zip"
    path.write_bytes(archive.archived(files))
    return path


def summed(files):
    """The files with sums that are right again."""
    rest = {name: data for name, data in files.items() if name != archive.SUMS}
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in rest.items())
    return rest | {archive.SUMS: sums.encode()}


def test_an_export_is_the_same_bytes_each_time_and_sound(tmp_path):
    first, second = archive.export(tmp_path / "a.zip"), archive.export(tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert first.sha256 == second.sha256
    found = archive.verify(tmp_path / "a.zip")
    assert found.sound
    assert found.same is True
    assert found.cases.keys() == {"encode", "reconstruct", "check"}
    assert found == archive.Verified(str(tmp_path / "a.zip"), first.manifest, found.cases, True)
    assert archive.verify(None).cases == found.cases


def test_members_are_stored_and_bear_no_date(tmp_path):
    archive.export(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as stored:
        for member in stored.infolist():
            assert (member.compress_type, member.date_time) == (zipfile.ZIP_STORED, (1980, 1, 1, 0, 0, 0))
        assert stored.namelist() == sorted(stored.namelist())


def test_the_sums_are_those_of_the_common_tool(tmp_path):
    archive.export(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as stored:
        stored.extractall(tmp_path)
    folder = tmp_path / archive.FOLDER
    assert (
        subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=folder, check=False).returncode == 0
    )


def test_an_export_overwrites_nothing(tmp_path):
    (tmp_path / "a.zip").write_text("mine")
    with pytest.raises(NameTaken):
        archive.export(tmp_path / "a.zip")


def test_broken_installed_vectors_are_not_published(tmp_path, monkeypatch):
    whole = vectors.packaged
    changed = lambda name: whole(name)[:-2] + b" \n" if name == "check.NVFP4.json" else whole(name)  # noqa: E731
    monkeypatch.setattr(archive, "packaged", changed)
    with pytest.raises(vectors.BrokenVectors, match=r"check\.NVFP4\.json"):
        archive.export(tmp_path / "a.zip")
    assert not list(tmp_path.iterdir())


def test_every_single_change_is_seen(tmp_path):
    files = archive.installed()
    for name in (MANIFEST, ORIGIN, SCHEMA, archive.SUMS, "encode.FP8_E4M3FN_ROW_BF16S.json"):
        assert not archive.verify_files("x", {k: v for k, v in files.items() if k != name}).sound, name
        flipped = bytes([files[name][-2] ^ 1]) + files[name][-1:]
        assert not archive.verify_files("x", files | {name: files[name][:-2] + flipped}).sound, name
    assert not archive.verify_files("x", files | {"more.json": b"{}"}).sound
    assert not archive.verify_files("x", summed(files | {"more.json": b"{}"})).sound


def test_other_answers_under_right_digests_are_not_taken_for_this_version():
    files = archive.installed()
    name = "check.Q6G64_F16S.json"
    document = json.loads(files[name])
    document["cases"] = document["cases"][1:]
    files[name] = json.dumps(document).encode()
    manifest = json.loads(files[MANIFEST])
    for entry in manifest["files"]:
        data = files[entry["name"]]
        entry |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    found = archive.verify_files("x", summed(files | {MANIFEST: json.dumps(manifest).encode()}))
    assert found.same is False
    assert len(found.problems) == 1
    manifest["version"] += 1
    newer = archive.verify_files("x", summed(files | {MANIFEST: json.dumps(manifest).encode()}))
    assert (newer.sound, newer.same) == (True, None)


@pytest.mark.parametrize("name", [ORIGIN, SCHEMA])
def test_origin_and_schema_may_not_be_exchanged_quietly(name):
    files = archive.installed()
    assert not archive.verify_files("x", files | {name: b"made by nobody"}).sound
    found = archive.verify_files("x", summed(files | {name: b"made by nobody"}))
    assert (found.same, found.problems) == (True, (f"{name} is not that of version 1",))
    del files[name]
    assert not archive.verify_files("x", summed(files)).sound


def test_what_is_no_archive_is_an_answer(tmp_path):
    for data in (b"", b"PK\3\4 nothing", archive.archived({})[:10]):
        (tmp_path / "x.zip").write_bytes(data)
        found = archive.verify(tmp_path / "x.zip")
        assert not found.sound
        assert found.manifest is None


@pytest.mark.parametrize("name", ["../../evil", "/evil", "evil", "a/b/c", "a/"])
def test_members_out_of_place_are_refused(tmp_path, name):
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as stored:
        stored.writestr(name, b"" if name.endswith("/") else b"x")
    (tmp_path / "x.zip").write_bytes(buffer.getvalue())
    found = archive.verify(tmp_path / "x.zip")
    assert not found.sound
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.zip"]


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as stored:
        stored.writestr(f"a/{MANIFEST}", bytes(archive.LARGEST + 1))
    assert "more than" in archive.verify(tmp_path / "x.zip").problems[0]


def test_a_path_that_cannot_be_read_is_no_answer(tmp_path):
    with pytest.raises(CannotRead):
        archive.verify(tmp_path / "absent.zip")
    with pytest.raises(CannotRead):
        archive.verify(tmp_path)


def test_broken_compression_is_an_answer(tmp_path):
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as stored:
        stored.writestr(f"a/{MANIFEST}", archive.installed()[MANIFEST])
    data = bytearray(buffer.getvalue())
    data[80:120] = b"\xff" * 40  # zlib raises an error of its own
    (tmp_path / "x.zip").write_bytes(data)
    assert not archive.verify(tmp_path / "x.zip").sound


def test_neither_other_compression_nor_countless_members_are_looked_at(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_LZMA) as stored:
        stored.writestr(f"a/{MANIFEST}", b"x")
    assert "neither stored nor deflated" in archive.verify(tmp_path / "x.zip").problems[0]
    with zipfile.ZipFile(tmp_path / "y.zip", "w") as stored:
        for i in range(archive.MEMBERS + 1):
            stored.writestr(f"a/{i}", b"")
    assert "members" in archive.verify(tmp_path / "y.zip").problems[0]


def test_members_of_two_folders_are_not_one_archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as stored:
        for number, (name, data) in enumerate(archive.installed().items()):
            stored.writestr(f"{'ab'[number % 2]}/{name}", data)
    assert "more than one folder: a, b" in archive.verify(tmp_path / "x.zip").problems[0]


def test_a_manifest_of_nothing_is_not_sound():
    manifest = json.loads(archive.installed()[MANIFEST]) | {"version": 99, "files": []}
    found = archive.verify_files("x", summed(archive.installed() | {MANIFEST: json.dumps(manifest).encode()}))
    assert any("names no file" in problem for problem in found.problems)


@pytest.mark.parametrize("member", ["id", "shape", "source", "refused", "rescued", "why", "dtype"])
@pytest.mark.parametrize("wrong", [[], {}, True, -1, 1e300])
def test_members_of_another_type_are_broken_vectors(member, wrong):
    document = json.loads(archive.installed()["encode.FP8_E4M3FN_ROW_BF16S.json"])
    document["cases"] = [document["cases"][0] | {member: wrong}]
    if (member, wrong) == ("why", []):  # nothing has to be said
        return
    with pytest.raises(vectors.BrokenVectors):
        read_cases(json.dumps(document).encode(), "encode.FP8_E4M3FN_ROW_BF16S.json")
