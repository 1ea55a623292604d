"""Sources that are no longer what was stored: nothing made of them, or compared with them, passes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.worker.material import Material
from tests.worker.rig import Rig, rig


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Rig]:
    """A service of its own: its content is damaged here."""
    with rig(tmp_path / "data") as made:
        made.started()
        yield made


@contextmanager
def damaged(made: Rig, path: Path, place: int) -> Iterator[None]:
    """For a while one bit of what is stored of a file is another; its size and its name stay."""
    stored = made.parts.blobs.path(made.store(path).sha256)
    stored.chmod(0o644)
    whole = stored.read_bytes()
    content = bytearray(whole)
    content[place] ^= 1
    stored.write_bytes(content)
    yield
    stored.write_bytes(whole)


def test_damaged_sources_pass_nothing(served: Rig, material: Material) -> None:
    checkpoint = served.checkpoint(material.folder)
    made = served.finished(served.convert(checkpoint, material.document))
    assert made.state == "passed"
    artifact = served.push(material.artifact)
    assert served.finished(served.verify(artifact.digest, checkpoint, material.document)).state == "passed"

    # The lowest bit of a small weight: another word of the source, and often the same code.
    for file, place in (("tokenizer.json", 1), ("model.safetensors", -4)):
        with damaged(served, material.folder / file, place):
            converted = served.finished(served.convert(checkpoint, material.document))
            assert (converted.state, converted.artifact_id) == ("failed", None)
            found = served.rows(converted.id)["conversion_findings"]
            assert "source.changed" in {row["code"] for row in found}

            verified = served.finished(served.verify(artifact.digest, checkpoint, material.document))
            assert verified.state == "failed"
            report = served.report(verified.id)
            changed = [finding for finding in report["findings"] if finding["code"] == "source.changed"]
            assert [finding["where"]["file"] for finding in changed] == [file]
            assert changed[0]["about"] == "source"
            outcomes = {check["name"]: check["outcome"] for check in report["checks"]}
            assert outcomes["source"] == "failed"
            assert outcomes["values"] == "passed"  # of the artifact's own words nothing is said by it
            # Without its source the artifact is as good as before.
            if file == "model.safetensors":
                assert served.finished(served.verify(artifact.digest)).state == "passed"
