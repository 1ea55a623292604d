"""A pass on a device: the same words and answers, named kernels, and the processor where the device fails."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ninfer_core.convert import convert
from ninfer_core.errors import DeviceFailed
from ninfer_core.formats import FORMATS, GroupedFormat
from ninfer_core.kernels.devices import Device
from ninfer_core.kernels.failover import FailingOver
from ninfer_core.kernels.processor import Processor, cpu_processor
from ninfer_core.kernels.values import CodeStatistics, GroupedPlanes
from ninfer_core.recipes import Plan
from ninfer_core.verify import asked, verify
from ninfer_core.verify.against import Against
from tests.build import EVERYTHING, open_path, plan, recipe, tensor, write_checkpoint

RECIP = "MAXABS_F16_RECIP_RNE_V1"
ROWS = "MAXABS_BF16S_RECIP_E4M3FN_RNE_V1"
BOARD = Device("cuda:0", "cuda", "a board", "9.0", "1", "1", "a compiler")


class Broken:
    """A device that answers `calls` times and then never again; what it counts is wrong by then."""

    device = BOARD

    def __init__(self, calls: int) -> None:
        self.calls = calls

    def produced(self) -> dict[str, tuple[str, ...]]:
        return {}

    def __getattr__(self, name: str) -> Any:
        def answer(*args: Any) -> Any:
            if self.calls == 0:
                for one in args:
                    if isinstance(one, CodeStatistics):
                        one.histogram[:] += 1
                        one.tallies[:] += 1
                raise DeviceFailed("the bus is gone")
            self.calls -= 1
            return getattr(cpu_processor(), name)(*args)

        return answer


@pytest.fixture
def bound(tmp_path: Path) -> Plan:
    """A checkpoint of few weights: the simulator has a thread for each octet."""
    random = np.random.default_rng(7)
    words = random.standard_normal((3, 130)).astype(np.float32).view(np.uint32)
    write_checkpoint(tmp_path, {"a": ("BF16", (words >> 16).astype(np.uint16)), "b": ("F32", words)})
    a, b = tensor("a", (3, 130), "BF16"), tensor("b", (3, 130), "F32")
    rules = [
        {"object": "q4", "value": a, "encode": RECIP, "format": "Q4G64_F16S"},
        {"object": "w8", "value": b, "encode": RECIP, "format": "W8G32_F16S"},
        {"object": "fp8", "value": a, "encode": ROWS, "format": "FP8_E4M3FN_ROW_BF16S"},
        {"object": "words", "value": a, "encode": "copy_words", "format": "BF16"},
    ]
    return plan(tmp_path, recipe(rules))


def reported(path: Path, bound: Plan, processor: Processor | None) -> dict[str, Any]:
    with open_path(path) as opened:
        checks = asked((*EVERYTHING, "parity"))
        return verify(opened, checks, Against(bound), workers=1, processor=processor).as_json()


def kernels(document: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    """What ran for each object, taken out of it."""
    return {item["name"]: item["metrics"].pop("kernels") for item in document["objects"]}


def test_a_pass_on_a_device_gives_the_same_words_and_names_it(simulated, bound, tmp_path: Path):
    processor = FailingOver(simulated)
    ours = convert(bound, tmp_path / "a.ninfer", workers=1)
    theirs = convert(bound, tmp_path / "b.ninfer", workers=1, processor=processor)
    assert (tmp_path / "a.ninfer").read_bytes() == (tmp_path / "b.ninfer").read_bytes()
    made = {item["name"]: item["kernels"] for item in theirs.as_json()["objects"]}
    assert made["q4"] == {"cuda:0": ["check.Q4G64_F16S.cuda", "encode.Q4G64_F16S.BF16.cuda"]}
    assert made["fp8"] == {
        "cpu": ["encode.FP8_E4M3FN_ROW_BF16S.BF16.cpu"],
        "cuda:0": ["check.FP8_E4M3FN_ROW_BF16S.cuda"],
    }
    assert ours.as_json()["objects"][0]["kernels"] == {
        "cpu": ["check.Q4G64_F16S.cpu", "encode.Q4G64_F16S.BF16.cpu"]
    }
    here, there = (reported(tmp_path / "a.ninfer", bound, one) for one in (None, processor))
    named = kernels(there)
    assert set(kernels(here)["w8"]) == {"cpu"}
    assert {**here} == {**there}
    assert here["verdict"] == "passed"
    assert set(named["w8"]) == {"cuda:0"}
    assert "parity.W8G32_F16S.F32.cuda" in named["w8"]["cuda:0"]
    assert named["words"]["cuda:0"] == ["parity.BF16.BF16.cuda", "statistics.BF16.cuda"]


@pytest.mark.parametrize("calls", [0, 1])
def test_a_device_that_fails_is_told_and_changes_nothing(calls: int, bound, tmp_path: Path):
    convert(bound, tmp_path / "a.ninfer", workers=1)
    here = reported(tmp_path / "a.ninfer", bound, None)
    there = reported(tmp_path / "a.ninfer", bound, FailingOver(Broken(calls)))
    (told,) = there.pop("findings")
    assert (told["code"], told["severity"]) == ("kernels.failed_over", "advisory")
    assert told["where"] == {"device": "cuda:0", "kernel": told["where"]["kernel"]}
    assert told["where"]["kernel"].endswith(".cuda")
    assert told["found"] == "the bus is gone"
    assert told["object"] in ("q4", "w8")
    assert here.pop("findings") == []
    kernels(here), kernels(there)
    assert there == here
    assert there["verdict"] == "passed"


def test_a_conversion_goes_on_as_well(bound, tmp_path: Path):
    convert(bound, tmp_path / "a.ninfer", workers=1)
    made = convert(bound, tmp_path / "b.ninfer", workers=1, processor=FailingOver(Broken(1)))
    assert made.written
    assert (tmp_path / "a.ninfer").read_bytes() == (tmp_path / "b.ninfer").read_bytes()
    assert [finding.code for finding in made.findings] == ["kernels.failed_over"]


@pytest.mark.parametrize("name", ["Q5G64_F16S", "FP8_E4M3FN_ROW_BF16S", "NVFP4"])
def test_what_a_device_counted_before_it_failed_is_not_counted_twice(name: str):
    fmt, random = FORMATS[name], np.random.default_rng(2)
    ours, theirs = CodeStatistics.empty(fmt), CodeStatistics.empty(fmt)
    codes, scales = random.integers(0, 256, (4, 64), np.uint8), random.integers(0, 9, 4).astype(np.uint16)

    def count(processor: Any, acc: CodeStatistics) -> None:
        if isinstance(fmt, GroupedFormat):
            planes = GroupedPlanes(codes.reshape(-1)[:64], codes.reshape(-1)[:16], scales[:2])
            processor.statistics_grouped(fmt, 70, planes, acc)
        elif name == "NVFP4":
            processor.statistics_nvfp4(codes, codes.reshape(-1)[:32], acc)
        else:
            processor.statistics_row(codes, scales, acc)

    failing = FailingOver(Broken(1))
    for _ in range(2):
        count(cpu_processor(), ours)
        count(failing, theirs)
    assert np.array_equal(ours.histogram, theirs.histogram)
    assert np.array_equal(ours.tallies, theirs.tallies)
    assert len(failing.failures()) == 1
