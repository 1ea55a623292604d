"""The report from the API equals the command line's for the same file, member by member, over golden and broken files.

`python -m tests.service.test_equality` compares every stored file; the suite takes a part of them.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.cli.app import run
from service.client import Client
from tests import build
from tests.service.serving import Service, serving

VECTORS = Path(__file__).resolve().parent.parent / "vectors"
EVERY = 12  # of the broken files, in the suite


@dataclass(frozen=True)
class Case:
    """Files of one artifact, the entry first."""

    kind: str
    files: tuple[Path, ...]

    @property
    def name(self) -> str:
        """For a test id."""
        return f"{self.files[0].parent.name}/{self.files[0].name}"

    @property
    def content(self) -> tuple[str, ...]:
        """What the artifact is known by."""
        return tuple(hashlib.sha256(path.read_bytes()).hexdigest() for path in self.files)


def cases(every: int) -> Iterator[Case]:
    """Golden artifacts of each revision, one in `every` of the broken ones, field cases of both kinds."""
    for folder in ("v1", "v2", "v3"):
        for entry in sorted((VECTORS / "golden" / folder).glob("*.ninfer")):
            yield Case("ninfer", (entry, *sorted(entry.parent.glob(f"{entry.name}.part-*"))))
    broken = VECTORS / "golden" / "invalid"
    for item in json.loads((broken / "manifest.json").read_text())[::every]:
        yield Case("ninfer", tuple(broken / file["file"] for file in item["files"]))
    for kind in ("ninfer", "safetensors"):
        for path in sorted((VECTORS / "cases" / kind).glob(f"*.{kind}"))[:: max(1, every // 4)]:
            yield Case(kind, (path,))
    yield Case("safetensors", tuple(sorted((VECTORS / "cases" / "sharded" / "missing_shard").iterdir())))


def by_command_line(*arguments: object) -> Any:
    """The document of a command, run in this process: starting one for each would take most of the time."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "document.json"
        run([*map(str, arguments), "--json", str(out)])
        return json.loads(out.read_text())


def alone(case: Case, folder: Path) -> Path:
    """The entry of a case, copied into a folder with these files alone."""
    for path in case.files:
        shutil.copyfile(path, folder / path.name)
    index = [path for path in case.files if path.name.endswith(".index.json")]
    return folder / (index or case.files)[0].name


def by_service(client: Client, given: Sequence[Case]) -> list[tuple[Any, Any]]:
    """(job, report) of every case; all jobs are started before the first is waited for."""
    started = []
    for case in given:
        artifact = client.push_artifact(case.files, case.kind)
        request = {"type": "verify", "artifact": artifact["digest"], "checks": []}
        started.append(client.start(request)["id"])
    jobs = [client.wait(job, timeout_seconds=120) for job in started]
    return [(job, client.report(job["run"])) for job in jobs]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for all of this module."""
    with serving(tmp_path_factory.mktemp("equality") / "data") as running:
        yield running


def compare(service: Service, given: Sequence[Case], folder: Path) -> None:
    """Fail on the first report that differs."""
    with service.client() as client:
        answers = by_service(client, given)
    for number, (case, (job, report)) in enumerate(zip(given, answers, strict=True)):
        place = folder / str(number)
        place.mkdir()
        expected = by_command_line("verify", alone(case, place))
        assert report == expected, case.name
        assert list(report) == list(expected), case.name
        assert job["state"] == report["verdict"], case.name


def test_reports_without_a_source(service: Service, tmp_path: Path) -> None:
    given = list(cases(EVERY))
    assert len({case.kind for case in given}) == 2
    compare(service, given, tmp_path)


def without_file_names(document: Any) -> Any:
    """The service names a converted file after its recipe, the command line as it was told."""
    files = document["artifact"]["files"] if document["artifact"] else []
    for file in files:
        del file["name"]
    return document


def test_refused_conversions(service: Service, tmp_path: Path) -> None:
    """A tensor that is not there, and a value that no encoder takes: refused before, and while, anything is written."""
    words = np.full((4, 64), 0x3F80, np.uint16)
    words[2, 7] = 0x7F80
    build.write_checkpoint(tmp_path, {"w": ("BF16", words)})
    for number, name in enumerate(("missing", "w")):
        rule = {
            "object": "w",
            "value": build.tensor(name, (4, 64), "BF16"),
            "encode": "MAXABS_F16_RECIP_RNE_V1",
            "format": "Q4G64_F16S",
        }
        recipe = tmp_path / "recipe.json"
        recipe.write_text(json.dumps(build.recipe([rule])))
        out = tmp_path / f"{number}.ninfer"
        expected = by_command_line("convert", "--checkpoint", tmp_path, "--recipe", recipe, "--out", out)
        assert expected["verdict"] == "refused"
        with service.client() as client:
            files = [
                {"name": "model.safetensors", "digest": client.push_file(tmp_path / "model.safetensors")}
            ]
            checkpoint = client.request("POST", "/v1/checkpoints", json={"files": files})["id"]
            stored = client.push_recipe(recipe)["digest"]
            request = {"type": "convert", "checkpoints": {"base": checkpoint}, "recipe": stored}
            job = client.wait(client.start(request)["id"])
            assert (job["state"], job["artifact"]) == ("failed", None)
            report = client.request("GET", f"/v1/conversions/{job['conversion']}/report")
        assert without_file_names(report) == without_file_names(expected), name


def test_reports_with_parity(service: Service, tmp_path: Path) -> None:
    """A converted artifact against its own source, and against another one."""
    rng = np.random.default_rng(5)
    shape = (300, 200)
    tensors = {
        name: ("BF16", (rng.standard_normal(shape).astype("<f4").view("<u4") >> 16).astype("<u2"))
        for name in ("a", "b", "c")
    }
    other = {**tensors, "b": ("BF16", tensors["b"][1][::-1].copy())}
    document = build.recipe(
        [
            {
                "object": name,
                "value": build.tensor(name, shape, "BF16"),
                "encode": encode,
                "format": fmt,
            }
            for name, fmt, encode in (
                ("a", "Q4G64_F16S", "MAXABS_F16_RECIP_RNE_V1"),
                ("b", "W8G32_F16S", "MAXABS_F16_RECIP_RNE_V1"),
                ("c", "BF16", "copy_words"),
            )
        ]
    )
    sources = {}
    for name, content in (("own", tensors), ("other", other)):
        (tmp_path / name).mkdir()
        sources[name] = build.write_checkpoint(tmp_path / name, content)
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(document))
    out = tmp_path / "a.ninfer"
    made = by_command_line("convert", "--checkpoint", sources["own"], "--recipe", recipe, "--out", out)
    with service.client() as client:
        stored = client.push_recipe(recipe)
        checkpoints = {name: client.push_checkpoint(folder)["id"] for name, folder in sources.items()}
        converted = client.wait(
            client.start(
                {
                    "type": "convert",
                    "checkpoints": {"base": checkpoints["own"]},
                    "recipe": document,
                    "output": {"revision": 2},
                }
            )["id"]
        )
        assert converted["state"] == "passed", converted
        report = client.request("GET", f"/v1/conversions/{converted['conversion']}/report")
        assert without_file_names(report) == without_file_names(made)
        assert list(report) == list(made)
        for name, recipe_given in (("own", stored["digest"]), ("other", document), ("own", None)):
            request = {"type": "verify", "artifact": converted["artifact"]}
            arguments: list[object] = ["verify", out, "--source", sources[name]]
            request["checkpoints"] = {"base": checkpoints[name]}
            if recipe_given is not None:
                request["recipe"] = recipe_given
                arguments += ["--recipe", recipe]
            job = client.wait(client.start(request)["id"])
            expected = by_command_line(*arguments)
            report = client.report(job["run"])
            assert without_file_names(report) == without_file_names(expected), name
            assert job["state"] == expected["verdict"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name, serving(Path(name) / "data") as running:
        # The same bytes are the same artifact, and keep the name under which they came first.
        everything = list({case.content: case for case in reversed(list(cases(1)))}.values())
        place = Path(name) / "files"
        place.mkdir()
        compare(running, everything, place)
        print(f"{len(everything)} reports are equal")
