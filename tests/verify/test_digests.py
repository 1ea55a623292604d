"""Digests of files and of the objects in them, taken in one reading: the report is the one of two readings."""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.convert import convert
from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.io import DiskFile
from ninfer_core.kernels.sha256 import available
from ninfer_core.opening import open_path
from ninfer_core.verify import asked, prepare
from ninfer_core.verify.against import Against
from ninfer_core.verify.checks import CheckName
from ninfer_core.verify.hashing import hashing
from ninfer_core.verify.held import of_artifact
from ninfer_core.verify.outcomes import Digested
from ninfer_core.verify.sample import Sample
from tests.build import EVERYTHING, plan, run, write_checkpoint
from tests.mixed import mixed_checkpoint
from tests.shards import prepared, run_by_shards, small_blocks

WAYS = ["processor", "hashlib", "hashlib with a helper"]
PIECE = 1000  # bytes that are read at a time


@pytest.fixture(params=WAYS)
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many a pass has, on a processor with the instructions or without."""
    if request.param == WAYS[0]:
        if not available():
            pytest.skip("this processor has no instructions for sha256")
    else:
        monkeypatch.setattr("ninfer_core.verify.hashing.proved", lambda: False)
    return 1 if request.param == WAYS[1] else 2


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Every object is large, and read in many pieces."""
    for module in ("files", "tensor", "safetensors"):
        monkeypatch.setattr(f"ninfer_core.verify.{module}.CHUNK_BYTES", PIECE)
    monkeypatch.setattr("ninfer_core.io.CHUNK_BYTES", PIECE)
    monkeypatch.setattr("ninfer_core.verify.tensor.WHOLE_BYTES", PIECE)
    monkeypatch.setattr("ninfer_core.verify.held.HELD_BYTES", 1)
    return monkeypatch


def apart(monkeypatch: pytest.MonkeyPatch, path: Path) -> dict[str, Any]:
    """The report of a pass that digests every object for itself."""
    with monkeypatch.context() as small:
        small.setattr("ninfer_core.verify.held.HELD_BYTES", 1 << 60)
        return run(path).as_json()


def digests_of(path: Path) -> list[Digested]:
    """What the tasks of its files yield."""
    with ExitStack() as stack:
        found = [task.run() for task in prepared(path, None, EVERYTHING, stack).tasks]
    return [outcome for outcome in found if isinstance(outcome, Digested)]


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One file, one in parts, and a sharded checkpoint."""
    home = tmp_path_factory.mktemp("artifacts")
    folder, document = mixed_checkpoint(home)
    bound = plan(folder, document)
    (home / "parts").mkdir()
    (home / "sharded").mkdir()
    convert(bound, home / "a.ninfer")
    convert(bound, home / "parts" / "a.ninfer", revision=3, max_file_bytes=80_000)
    words = np.random.default_rng(5).integers(0, 1 << 32, (40, 90), np.uint32)
    shards = (
        {"f32": ("F32", words), "i64": ("I64", words)},
        {"bf16": ("BF16", words), "empty": ("F32", words[:0])},
    )
    for number, tensors in enumerate(shards):
        write_checkpoint(home / "sharded", tensors, f"m-{number}.safetensors")
    names = {name: f"m-{number}.safetensors" for number, tensors in enumerate(shards) for name in tensors}
    index = str({"weight_map": names}).replace("'", '"')
    (home / "sharded" / "model.safetensors.index.json").write_text(index)
    return {"file": home / "a.ninfer", "parts": home / "parts", "sharded": home / "sharded"}


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(1, 200), max_size=4)), max_size=6))
@settings(max_examples=50, deadline=None)
def test_a_whole_and_its_parts(spans: list[tuple[bool, list[int]]]):
    for threads in (1, 2):
        for proved in (available(), False):
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr("ninfer_core.verify.hashing.proved", lambda proved=proved: proved)
                whole, place = hashlib.sha256(), 0
                with hashing(threads) as digests:
                    for inside, lengths in spans:
                        part = hashlib.sha256()
                        if inside:
                            digests.begin()
                        for length in lengths:
                            piece = bytearray(place % 251 for place in range(place, place + length))
                            place += length
                            whole.update(piece)
                            part.update(piece)
                            digests.update(memoryview(piece))
                            piece[:] = bytes(length)  # as the next reading does
                        if inside:
                            assert digests.end() == part.hexdigest()
                    assert digests.hexdigest() == whole.hexdigest()


@pytest.mark.parametrize("kind", ["file", "parts", "sharded"])
def test_the_report_is_the_same(
    kind: str, threads: int, artifacts: dict[str, Path], held: pytest.MonkeyPatch
):
    path = artifacts[kind]
    expected = apart(held, path)
    assert expected["verdict"] == (
        "incomplete" if kind == "sharded" else "passed"
    )  # it has no layout to check
    with_files = [one for outcome in digests_of(path) for one in outcome.objects]
    assert len(with_files) >= (3 if kind == "sharded" else 6)
    assert {one["sha256"] for one in expected["objects"]} >= set(with_files)
    assert run(path).as_json() == expected
    assert run_by_shards(path, shard_bytes=700).as_json() == expected


def test_no_object_of_two_files_or_of_a_reused_result(artifacts: dict[str, Path], held: pytest.MonkeyPatch):
    with ExitStack() as stack:
        opened = stack.enter_context(open_path(artifacts["parts"]))
        whole = prepare(opened.kind, opened.files, opened.entry, asked(EVERYTHING))
        artifact = whole._artifact
        found = of_artifact(artifact, artifact.tensors)
        assert len(found) == len(artifact.sources) > 2
        assert 0 < sum(map(len, found)) < len(artifact.tensors)
        for source, objects in zip(artifact.sources, found, strict=True):
            for one in objects:
                item = artifact.objects[one.ordinal]
                ours, logical = bytearray(item.bytes), bytearray(item.bytes)
                source.read_into(ours, one.begin)
                artifact.payload.read_into(logical, item.offset)
                assert (one.end, ours) == (one.begin + item.bytes, logical)
        first = artifact.tensors[0].ordinal
        assert first not in {one.ordinal for one in of_artifact(artifact, artifact.tensors[1:])[0]}


class Failing:
    """A source that ends, or fails, once more than `left` bytes are asked for."""

    def __init__(self, file: DiskFile, left: int, broken: bool) -> None:
        self.name, self.size = file.name, file.size
        self._file, self._left, self._broken = file, left, broken

    def read_into(self, buffer, offset: int) -> None:
        size = len(memoryview(buffer))
        if offset + size > self._left:
            if self._broken:
                raise CannotRead(f"cannot read {self.name}: Input/output error")
            raise CutShort(self.name, offset, size, max(0, self._left - offset))
        self._file.read_into(buffer, offset)

    def changed(self) -> None:
        return None


class FailingFiles:
    """A `FileSet` whose files are read well while a directory is."""

    def __init__(self, files) -> None:
        self.names, self._files, self._open = files.names, files, {}

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def open(self, name: str) -> Failing:
        if name not in self._open:
            file = self._files.open(name)
            self._open[name] = Failing(file, file.size, False)
        return self._open[name]

    def fail(self, share: float, broken: bool) -> None:
        for file in self._open.values():
            file._left, file._broken = int(share * file.size), broken


@pytest.mark.parametrize("broken", [False, True], ids=["cut", "unreadable"])
@pytest.mark.parametrize("kind", ["file", "parts", "sharded"])
def test_a_file_that_ends_or_fails_while_it_is_read(
    kind: str, broken: bool, threads: int, artifacts: dict[str, Path], held: pytest.MonkeyPatch
):
    reports: dict[float, list[dict[str, Any]]] = {share: [] for share in (0.0, 0.3, 0.7, 0.99)}
    for least in (1 << 60, 1):
        held.setattr("ninfer_core.verify.held.HELD_BYTES", least)
        for share, found in reports.items():
            with open_path(artifacts[kind]) as opened:
                files = FailingFiles(opened.files)
                pass_ = prepare(opened.kind, files, opened.entry, asked(EVERYTHING), workers=threads)
                files.fail(share, broken)
                found.append(pass_.conclude(pass_.pool.run(task.run for task in pass_.tasks)).as_json())
    for share, (expected, ours) in reports.items():
        assert expected["verdict"] == ("incomplete" if broken else "failed")
        assert ours == expected, share


@pytest.mark.parametrize("kind", ["file", "parts", "sharded"])
def test_progress_is_what_was_announced(
    kind: str, threads: int, artifacts: dict[str, Path], held: pytest.MonkeyPatch
):
    done: list[int] = []
    with open_path(artifacts[kind]) as opened:
        whole = prepare(
            opened.kind, opened.files, opened.entry, asked(EVERYTHING), workers=threads, progress=done.append
        )
        whole.pool.run(task.run for task in whole.tasks)
    assert sum(done) == whole.totals.bytes


@pytest.mark.parametrize(
    ("checks", "fraction"),
    [(("structure",), None), (("parity",), None), (("parity",), 0.3), ((*EVERYTHING, "parity"), 0.3)],
    ids=["listing", "parity", "a sample", "a sample and all words"],
)
def test_progress_of_passes_that_do_less_or_more(
    checks: tuple[CheckName, ...], fraction: float | None, tmp_path: Path, held: pytest.MonkeyPatch
):
    small_blocks(held, 4096)
    bound = plan(*mixed_checkpoint(tmp_path))
    convert(bound, tmp_path / "a.ninfer")
    sample = None if fraction is None else Sample(fraction)
    against = Against(bound, sample=sample) if "parity" in checks else None
    done: list[int] = []
    with open_path(tmp_path / "a.ninfer") as opened:
        files = (opened.kind, opened.files, opened.entry)
        whole = prepare(*files, asked(checks), against, workers=1, progress=done.append)
        report = whole.conclude(whole.pool.run(task.run for task in whole.tasks))
    assert report.verdict == "passed"
    assert (report.sample is None) == (fraction is None)
    assert sum(done) == whole.totals.bytes > 0


def test_a_pass_can_be_stopped_within_a_file(
    threads: int, artifacts: dict[str, Path], held: pytest.MonkeyPatch
):
    class Enough(Exception):
        pass

    done: list[int] = []

    def progress(count: int) -> None:
        done.append(count)
        if len(done) == 5:
            raise Enough

    with open_path(artifacts["file"]) as opened:
        whole = prepare(
            opened.kind, opened.files, opened.entry, asked(EVERYTHING), workers=threads, progress=progress
        )
        with pytest.raises(Enough):
            whole.tasks[0].run()
    assert len(done) == 5
