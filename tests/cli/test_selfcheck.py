"""`ninfer-gate kernels` and `selfcheck` as a person runs them, and what one says of the other."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from ninfer_core.kernels.devices import find_device
from ninfer_core.kernels.host import Cpu
from ninfer_core.kernels.registry import KERNELS
from ninfer_core.selfcheck import run as selfcheck_run
from ninfer_core.selfcheck.result import KernelOutcome, KernelResult, SelfCheck, evidence_key
from service.cli import app, evidence

ONLY = "check.*.cpu"
CHECKS = [one.name for one in KERNELS if one.operation == "check" and one.device_class == "cpu"]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Outcomes are kept here alone; compiled kernels stay where they are."""
    monkeypatch.setattr(evidence, "_file", lambda: tmp_path / "kept" / "selfchecks.json")
    return tmp_path


@pytest.fixture
def ask(machine: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run one command line in this process: exit code, standard output, standard error."""

    def asked(*arguments: str) -> tuple[int, str, str]:
        code = app.run(arguments)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return asked


class Blind(Cpu):
    """A processor that misses padding."""

    def scan_grouped(self, *block: Any) -> int:
        return super().scan_grouped(*block) & ~8


def test_what_passes_is_listed_with_the_kernels(ask: Any) -> None:
    before = json.loads(ask("kernels", "--only", ONLY, "--json", "-")[1])
    assert before["schema"] == "ninfer-gate/kernels/1"
    assert [one["kernel"] for one in before["kernels"]] == CHECKS
    assert all(one["selfchecks"] == {"cpu": None} for one in before["kernels"])

    code, out, _ = ask("selfcheck", "--only", ONLY)
    assert code == 0
    assert "PASSED   cpu" in out
    assert all(name in out for name in CHECKS)

    after = json.loads(ask("kernels", "--only", ONLY, "--json", "-")[1])
    for one in after["kernels"]:
        last = one["selfchecks"]["cpu"]
        assert (last["outcome"], last["level"]) == ("passed", "quick")
    assert "passed (quick, 20" in ask("kernels", "--only", ONLY)[1]


def test_a_wrong_kernel_is_named_with_its_first_mismatch(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfcheck_run, "processor_of", lambda device: Blind())
    code, out, _ = ask("selfcheck", "--only", ONLY)
    assert code == 1
    assert "FAILED   cpu" in out
    assert "check.Q4G64_F16S.cpu: " in out
    assert "mask, expected 0x08, found 0x00" in out
    document = json.loads(ask("selfcheck", "--only", ONLY, "--json", "-")[1])
    assert document["outcome"] == "failed"
    outcomes = {one["kernel"]: one["outcome"] for one in document["kernels"]}
    assert outcomes["check.Q4G64_F16S.cpu"] == "failed"
    assert outcomes["check.NVFP4.cpu"] == "passed"
    listed = json.loads(ask("kernels", "--only", ONLY, "--json", "-")[1])
    assert listed["kernels"][0]["selfchecks"]["cpu"]["outcome"] == "failed"


def test_what_was_not_checked_is_incomplete(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(Cpu):
        """A processor without memory."""

        def scan_grouped(self, *block: Any) -> int:
            raise MemoryError

    monkeypatch.setattr(selfcheck_run, "processor_of", lambda device: Full())
    code, out, _ = ask("selfcheck", "--device", "all", "--only", "check.Q4*.cpu")
    assert code == 3
    assert "INCOMPLETE" in out
    assert "there is too little memory" in out


def test_all_devices_are_one_document(ask: Any) -> None:
    code, out, _ = ask("selfcheck", "--device", "all", "--only", "check.NVFP4.cpu", "--json", "-")
    document = json.loads(out)
    assert (code, document["schema"], document["outcome"]) == (0, "ninfer-gate/selfchecks/1", "passed")
    assert [check["device"]["name"] for check in document["checks"]] == ["cpu"]


def test_what_cannot_be_checked_is_no_answer(ask: Any) -> None:
    for said, *options in (
        ("there is no device called 'gpu': give cpu, cuda:N or all", "--device", "gpu"),
        ("there is no device 'cuda:7' here (here: cpu", "--device", "cuda:7"),
        ("no kernel of a device of class cpu is called nothing", "--only", "nothing"),
    ):
        code, out, err = ask("selfcheck", *options, "--json", "-")
        assert code == 2
        assert said in err
        assert json.loads(out)["error"]["message"].startswith(said[:9])
    assert ask("kernels", "--only", "nothing")[0] == 2


def test_a_quick_pass_does_not_stand_over_a_full_one_but_a_failure_does(machine: Path) -> None:
    device, kernel = find_device("cpu"), KERNELS[CHECKS[0]]

    def kept(level: Literal["quick", "full"], outcome: KernelOutcome) -> tuple[str, str]:
        evidence.keep([SelfCheck(level, 0, device, {}, (KernelResult(kernel, outcome),))])
        last = evidence.kept_outcomes()[evidence_key(kernel, device)]
        return last.level, last.outcome

    assert kept("quick", "passed") == ("quick", "passed")
    assert kept("full", "passed") == ("full", "passed")
    assert kept("quick", "passed") == ("full", "passed")
    assert kept("quick", "failed") == ("quick", "failed")
    assert kept("quick", "passed") == ("quick", "passed")
    assert kept("full", "failed") == ("full", "failed")
    assert kept("quick", "passed") == ("full", "failed")
    assert kept("full", "passed") == ("full", "passed")
    assert kept("quick", "not_checked") == ("full", "passed")
    assert kept("full", "not_checked") == ("full", "passed")
    (machine / "kept" / "selfchecks.json").write_text("not ours")
    assert evidence.kept_outcomes() == {}
    assert kept("quick", "passed") == ("quick", "passed")
