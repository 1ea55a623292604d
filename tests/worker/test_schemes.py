"""Checks of stored arrays and struct types as jobs: the document of the core, out of the store, kept once."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from numpy.typing import NDArray

from service import scheme_checks
from service.records import jobs
from service.scheme_checks import Archive, CheckScheme, Stored
from tests.schemes.vectors import cases
from tests.worker.inside import follow, inside
from tests.worker.rig import PROJECT, Rig, rig
from worker.workflows import scheme as workflow

CASE = cases("gptq")[0]
NAMES = ("qweight", "qzeros", "scales", "g_idx")
PARTS = {name: CASE.arrays[name] for name in NAMES}
EXPECTED = CASE.arrays["expected_KxN"]
PARAMS = {"bits": CASE.params["bits"], "group_size": CASE.params["group_size"]}
STRUCT = {
    "types": [{"structure": [{"name": "lo", "type": "UINT4"}, {"name": "h", "type": "UINT4"}]}],
    "root": 0,
    "dims": [],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with rig(tmp_path_factory.mktemp("schemes") / "data") as built:
        yield built


class Killed(BaseException):
    """Nothing below a worker takes it for an error."""


def killed(*_: Any) -> None:
    raise Killed


def push(made: Rig, folder: Path, content: bytes) -> str:
    path = folder / "content"
    path.write_bytes(content)
    return made.store(path).digest


def npy(array: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def npz(arrays: dict[str, NDArray[Any]]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]  # its stub takes the first name for another argument
    return stream.getvalue()


def checked(made: Rig, request: CheckScheme, state: str) -> dict[str, Any]:
    """The document of a job that ended so."""
    with inside(made) as context:
        job_id = made.job(request)
        follow(context, job_id)
    job = made.row(job_id)
    assert (job.state, job.error) == (state, None)
    view = scheme_checks.one(made.parts, PROJECT, job_id)
    assert view.answered
    assert (view.check.verdict, view.check.form) == (state, request.form)
    document: dict[str, Any] = view.check.document
    assert view.check.errors == sum(one["severity"] == "error" for one in document["findings"])
    return document


def left(made: Rig, job_id: str) -> tuple[Any, ...]:
    """Everything that a job leaves behind."""
    check = scheme_checks.one(made.parts, PROJECT, job_id).check
    return made.rows(job_id), made.events(job_id), check.verdict, check.finished_at, check.document


def codes(document: dict[str, Any]) -> list[str]:
    return [finding["code"] for finding in document["findings"]]


def test_an_archive_against_its_reference(made: Rig, tmp_path: Path) -> None:
    archive = npz({f"layer.{name}": array for name, array in PARTS.items()} | {"layer.bias": EXPECTED[0]})
    request = CheckScheme(
        "gptq",
        archive=Archive(push(made, tmp_path, archive), "npz", "layer."),
        shape=EXPECTED.shape,
        params=PARAMS,
        reference=push(made, tmp_path, npy(EXPECTED)),
    )
    document = checked(made, request, "passed")
    assert document["reference"]["differing"] == 0
    assert document["coverage"]["words"] == document["coverage"]["values"] == "full"
    with made.parts.database.read() as session:
        job_id = jobs.jobs(session, PROJECT, limit=1).items[0].id
        progress = jobs.progress(session, job_id)
        ending = jobs.events(session, job_id, 0, 100)[-1].data
    assert progress.bytes == progress.bytes_done == len(archive) + len(npy(EXPECTED))
    assert progress.objects == progress.objects_done == 2
    assert (ending["scheme_check"], ending["verdict"]) == (job_id, "passed")


def test_parts_one_by_one_and_a_group_that_does_not_exist(made: Rig, tmp_path: Path) -> None:
    wrong = PARTS["g_idx"].copy()
    wrong[5] = 99
    given = {name: Stored(push(made, tmp_path, npy(array))) for name, array in PARTS.items()}
    given["g_idx"] = Stored(push(made, tmp_path, wrong.tobytes()), "raw")
    request = CheckScheme("gptq", given, shape=EXPECTED.shape, params=PARAMS)
    document = checked(made, request, "failed")
    assert codes(document) == ["scheme.group_out_of_range"]
    assert document["findings"][0]["where"]["part"] == "g_idx"


def test_what_is_asked_for_and_cannot_be_looked_at(made: Rig, tmp_path: Path) -> None:
    archive = Archive(push(made, tmp_path, safetensors.numpy.save(PARTS)))
    transposed = push(made, tmp_path, npy(EXPECTED.T))
    request = CheckScheme("gptq", archive=archive, shape=EXPECTED.shape, params=PARAMS, reference=transposed)
    assert codes(checked(made, request, "failed")) == ["scheme.reference_mismatch"]
    broken = Archive(push(made, tmp_path, b"PK, but no archive"), "npz")
    document = checked(made, CheckScheme("gptq", archive=broken, params=PARAMS, shape=(4, 4)), "failed")
    assert codes(document) == ["scheme.file_malformed"]  # as on the command line: that is all of the answer
    no_values = push(made, tmp_path, b"no NumPy file")
    request = CheckScheme("gptq", archive=archive, shape=EXPECTED.shape, params=PARAMS, reference=no_values)
    document = checked(made, request, "failed")
    assert codes(document) == ["scheme.file_malformed"]
    assert document["coverage"]["words"] == "none"


def test_struct_types_with_and_without_their_payload(made: Rig, tmp_path: Path) -> None:
    struct = push(made, tmp_path, json.dumps(STRUCT).encode())
    document = checked(made, CheckScheme(struct=struct, payload=push(made, tmp_path, b"\x51")), "passed")
    assert [leaf["path"] for leaf in document["leaves"]] == ["lo", "h"]
    assert (document["size_bytes"], document["payload_bytes"]) == (1, 1)
    document = checked(made, CheckScheme(struct=struct, payload=push(made, tmp_path, b"\x51\x00")), "failed")
    assert codes(document) == ["struct.payload_size_mismatch"]
    elsewhere = push(made, tmp_path, json.dumps({**STRUCT, "payload_file": "x.bin"}).encode())
    assert checked(made, CheckScheme(struct=elsewhere), "incomplete")["findings"] == []
    none = push(made, tmp_path, b"no JSON")
    assert codes(checked(made, CheckScheme(struct=none), "failed")) == ["structure.json_syntax"]


def test_content_that_is_damaged_in_the_store_is_nobodys_finding(made: Rig, tmp_path: Path) -> None:
    struct = push(made, tmp_path, json.dumps({**STRUCT, "name": "damaged"}).encode())
    path = made.parts.blobs.path(struct.removeprefix("sha256:"))
    path.chmod(0o600)
    path.write_bytes(path.read_bytes().replace(b"damaged", b"DAMAGED"))
    with inside(made) as context:
        job_id = made.job(CheckScheme(struct=struct))
        follow(context, job_id)
    job = made.row(job_id)
    assert (job.state, job.error["code"]) == ("error", "content_damaged")
    assert not scheme_checks.one(made.parts, PROJECT, job_id).answered


def test_a_step_that_is_done_again_changes_nothing(made: Rig, tmp_path: Path) -> None:
    """A worker is killed while it checks, and another after it wrote its answer and before the engine heard of it."""
    struct = push(made, tmp_path, json.dumps({**STRUCT, "name": "again"}).encode())
    with inside(made) as context:
        job_id = made.job(CheckScheme(struct=struct))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workflow.scheme_checks, "save", killed)
            with pytest.raises(Killed):
                follow(context, job_id)
        assert made.row(job_id).state == "running"
        assert not scheme_checks.one(made.parts, PROJECT, job_id).answered
        follow(context, job_id)
        first = left(made, job_id)
        assert made.row(job_id).state == "passed"
        follow(context, job_id)
    assert left(made, job_id) == first


def test_a_check_that_is_cancelled_has_no_answer(made: Rig, tmp_path: Path) -> None:
    struct = push(made, tmp_path, json.dumps({**STRUCT, "name": "cancelled"}).encode())
    with inside(made) as context:
        job_id = made.job(CheckScheme(struct=struct))

        def cancel() -> None:
            with made.parts.database.write() as session:
                jobs.request_cancel(session, PROJECT, job_id)

        follow(context, job_id, check=cancel)
    assert made.row(job_id).state == "cancelled"
    view = scheme_checks.one(made.parts, PROJECT, job_id)
    assert (view.answered, view.check.verdict, view.check.document) == (False, None, None)
