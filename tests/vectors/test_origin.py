"""Every vector file is the one its origin page names."""

import hashlib
import re

from tests.vectors.load import HERE


def test_every_file_has_the_stated_digest():
    stated = dict(
        re.findall(
            r"\| `((?:encoder|cases)/[^`]+)` \| \d+ \| `([0-9a-f]{64})` \|", (HERE / "ORIGIN.md").read_text()
        )
    )
    found = {name: hashlib.sha256((HERE / name).read_bytes()).hexdigest() for name in stated}
    assert found == stated
    folders = ("encoder", "cases/declared", "cases/pairs")
    present = {path for folder in folders for path in (HERE / folder).rglob("*") if path.is_file()}
    assert {path.relative_to(HERE).as_posix() for path in present} <= stated.keys()


def test_every_artifact_has_the_stated_digest():
    lines = (HERE / "golden" / "SHA256SUMS").read_text().splitlines()
    stated = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    found = {name: hashlib.sha256((HERE / name).read_bytes()).hexdigest() for name in stated}
    assert found == stated
    present = {
        path.relative_to(HERE).as_posix()
        for folder in ("golden", "cases/ninfer", "cases/parity")
        for path in (HERE / folder).rglob("*")
        if path.is_file() and path.name != "SHA256SUMS"
    }
    assert present == {name for name in stated if name != "cases/manifest.ninfer.json"}


def test_every_file_of_the_synthetic_target_has_the_stated_digest():
    page = (HERE / "ORIGIN.targets.md").read_text()
    stated = dict(re.findall(r"\| `(targets/[^`]+)` \| \d+ \| `([0-9a-f]{64})` \|", page))
    found = {
        path.relative_to(HERE).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (HERE / "targets").rglob("*")
        if path.is_file()
    }
    assert found == stated


def test_every_file_about_schemes_has_the_stated_digest():
    page = (HERE / "ORIGIN.schemes.md").read_text()
    stated = dict(re.findall(r"\| `([^`]+)` \| \d+ \| `([0-9a-f]{64})` \|", page))
    folders = ("schemes", "struct_types", "cases/gptq")
    present = [path for folder in folders for path in (HERE / folder).rglob("*") if path.is_file()]
    present.append(HERE / "cases" / "manifest.schemes.json")
    found = {
        path.relative_to(HERE).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in present
    }
    assert found == stated
