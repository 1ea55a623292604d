"""A self-check asks every kernel, names what is wrong, and is evidence for one combination only."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ninfer_core.errors import Usage
from ninfer_core.kernels.devices import Device, find_device
from ninfer_core.kernels.host import Cpu
from ninfer_core.kernels.processor import cpu_processor
from ninfer_core.kernels.registry import KERNELS, Kernel
from ninfer_core.selfcheck import huge, memory, run
from ninfer_core.selfcheck.result import KernelResult, SelfCheck, evidence_key, outcome_of
from ninfer_core.selfcheck.run import DEPTHS, check_processor, chosen, self_check

CHECK = KERNELS["check.Q4G64_F16S.cpu"]
ENCODE = KERNELS["encode.Q4G64_F16S.BF16.cpu"]
GPU = Device("cuda:0", "cuda", "model", "9.0", "580", "CUDA 13.0", "numba")


def ticks(step: float = 0.01) -> Callable[[], float]:
    """A timer that goes on by a step each time it is read."""
    now = iter(range(1 << 30))
    return lambda: next(now) * step


def checked(processor: Any, kernel: Kernel, level: Any = "quick", seed: int = 0) -> KernelResult:
    """The result of one kernel."""
    (result,) = check_processor(processor, (kernel,), level=level, seed=seed, timer=ticks())
    return result


@pytest.fixture(scope="module")
def quick() -> SelfCheck:
    """All kernels of this machine's processor."""
    return self_check(find_device("cpu"), level="quick", seed=0, timer=ticks())


def test_every_kernel_of_the_processor_passes(quick: SelfCheck) -> None:
    assert [result.kernel for result in quick.kernels] == [
        one for one in KERNELS if one.device_class == "cpu"
    ]
    assert [one.reason or one.first_mismatch for one in quick.kernels if one.outcome != "passed"] == []
    assert quick.outcome == "passed"
    for result in quick.kernels:
        assert result.cases >= 5, result.kernel.name
        assert result.values >= result.cases
        assert (result.runs, result.equal_runs) == (5, 5)
        assert result.bytes_per_second is None
        assert result.first_mismatch is None


def test_the_document_holds_what_the_schema_says(quick: SelfCheck) -> None:
    document = quick.as_json()
    assert {*document} == {"schema", "level", "seed", "outcome", "device", "software", "kernels"}
    assert document["schema"] == "ninfer-gate/selfcheck/1"
    assert document["device"]["name"] == "cpu"
    first = document["kernels"][0]
    assert first["kernel"] == ENCODE.name
    assert first["compute_profile_digest"] == ENCODE.profile.digest
    assert first["kernel_digest"] == ENCODE.digest
    assert len({one["key"] for one in document["kernels"]}) == len(quick.kernels)


def test_any_part_of_the_key_makes_it_another() -> None:
    device = find_device("cpu")
    changed = (
        replace(device, model="another"),
        replace(device, capability="another"),
        replace(device, driver="another"),
        replace(device, runtime="another"),
        replace(device, compiler="another"),
    )
    others = [evidence_key(ENCODE, one) for one in changed]
    others += [evidence_key(KERNELS["encode.Q5G64_F16S.BF16.cpu"], device), evidence_key(ENCODE, GPU)]
    others.append(evidence_key(ENCODE, replace(device, simulated=True)))
    key = evidence_key(ENCODE, device)
    assert len({key, *others}) == 1 + len(others)
    assert evidence_key(ENCODE, replace(device, name="cpu:1")) == key  # a name is no fact of a device


@pytest.mark.parametrize(
    ("outcomes", "outcome"),
    [
        (("passed", "passed"), "passed"),
        (("passed", "not_checked"), "incomplete"),
        (("not_checked", "failed"), "failed"),
        (("passed", "error"), "failed"),
        ((), "incomplete"),
    ],
)
def test_only_kernels_that_all_passed_are_a_pass(outcomes: tuple[Any, ...], outcome: str) -> None:
    assert outcome_of(tuple(KernelResult(CHECK, one) for one in outcomes)) == outcome


class Faulty(Cpu):
    """A processor whose checks answer what the test says."""

    def __init__(self, answers: Callable[[int], int]) -> None:
        super().__init__()
        self.answers = answers

    def scan_grouped(self, *block: Any) -> int:
        return self.answers(super().scan_grouped(*block))


def test_a_wrong_answer_fails_its_kernel_and_is_named() -> None:
    result = checked(Faulty(lambda mask: mask & ~8), CHECK)
    assert result.outcome == "failed"
    assert result.reason is None
    assert result.mismatches > 0
    first = result.first_mismatch
    assert first is not None
    assert (first.where, first.expected, first.found) == ("mask", "0x08", "0x00")
    assert first.case.startswith("known ")
    assert first.case.endswith(" of check.Q4G64_F16S.json")
    assert first.why


def test_a_kernel_that_raises_is_an_error_and_the_next_one_is_asked() -> None:
    def broken(mask: int) -> int:
        raise RuntimeError("the board is gone")

    results = check_processor(Faulty(broken), (CHECK, ENCODE), level="quick", seed=0, timer=ticks())
    assert [one.outcome for one in results] == ["error", "passed"]
    assert results[0].reason is not None
    assert results[0].reason.endswith("RuntimeError: the board is gone")


def test_too_little_memory_is_no_pass() -> None:
    def exhausted(mask: int) -> int:
        raise MemoryError

    result = checked(Faulty(exhausted), CHECK)
    assert (result.outcome, result.reason) == ("not_checked", "there is too little memory for its questions")


def test_a_wrong_answer_stays_one_when_memory_runs_out() -> None:
    seen: list[int] = []

    def wrong_then_exhausted(mask: int) -> int:
        seen.append(mask)
        if len(seen) > 3:
            raise MemoryError
        return mask ^ 4

    result = checked(Faulty(wrong_then_exhausted), CHECK)
    assert (result.outcome, result.mismatches) == ("failed", 3)


def test_an_output_that_is_not_written_is_wrong() -> None:
    class Short(Cpu):
        """Whose products of a matrix end a row early."""

        def matvec_grouped(self, *block: Any) -> None:
            out = block[-1].copy()
            super().matvec_grouped(*block[:-1], out)
            block[-1][:-1] = out[:-1]

    result = checked(Short(), KERNELS["matvec.Q4G64_F16S.BF16.cpu"])
    assert result.first_mismatch is not None
    assert result.first_mismatch.case.startswith("shape 1x1, vector ")
    assert result.first_mismatch.found == "0x7fc1"


def test_other_bits_for_the_same_question_fail() -> None:
    # Always the same when it is asked again, and never what was judged.
    again = checked(Faulty(right_once()), CHECK)
    assert (again.outcome, again.runs, again.equal_runs, again.mismatches) == ("failed", 5, 1, 4)
    assert again.first_mismatch is not None
    assert again.first_mismatch.case == (
        "a physical scale in row 0, group 65, lane 0 of 4100 columns, time 2"
    )
    assert again.first_mismatch.expected != again.first_mismatch.found


def test_the_largest_question_is_the_one_that_is_repeated() -> None:
    class Third(Cpu):
        """Whose third answer to whatever is large has another bit."""

        asked = 0

        def encode(self, fmt: Any, source: Any, dtype: str, out: Any) -> Any:
            answer = super().encode(fmt, source, dtype, out)
            if source.size > 9_000:
                self.asked += 1
                out.base[0] ^= self.asked % 3 == 0
            return answer

    result = checked(Third(), ENCODE)
    assert (result.outcome, result.runs, result.equal_runs) == ("failed", 5, 4)
    assert result.first_mismatch is not None
    assert result.first_mismatch.case == "edges, time 3"


def right_once() -> Callable[[int], int]:
    """The right mask for every question, and another one whenever the largest is asked again."""
    seen, asked = [], questions_of(CHECK)

    def answer(mask: int) -> int:
        seen.append(mask)
        return mask if len(seen) <= asked else mask ^ 1

    return answer


def questions_of(kernel: Kernel) -> int:
    """How many questions the quick level has."""
    return sum(1 for _ in run._QUESTIONS[kernel.operation](kernel, np.random.default_rng(0), DEPTHS["quick"]))


def test_progress_names_what_comes_next() -> None:
    told: list[tuple[int, int, str]] = []
    kernels = (CHECK, KERNELS["check.NVFP4.cpu"])
    check_processor(
        cpu_processor(), kernels, level="quick", seed=0, timer=ticks(), progress=lambda *one: told.append(one)
    )
    assert told == [(0, 2, kernels[0].name), (1, 2, kernels[1].name), (2, 2, "")]


def test_a_seed_draws_the_same_words_again_and_another_one_others() -> None:
    def drawn(seed: int) -> Iterator[bytes]:
        class Listening(Cpu):
            """Keeps what it is asked."""

            def encode(self, fmt: Any, source: Any, dtype: str, out: Any) -> Any:
                sources.append(source.tobytes())
                return super().encode(fmt, source, dtype, out)

        sources: list[bytes] = []
        checked(Listening(), ENCODE, seed=seed)
        return iter(sources)

    first, again, other = ([*drawn(seed)] for seed in (1, 1, 2))
    assert first == again
    assert len(first) == len(other)
    assert first[-1] != other[-1]


def test_only_a_glob_chooses_and_none_is_a_mistake() -> None:
    device = find_device("cpu")
    assert [one.name for one in chosen(device, "check.*Q4*")] == [CHECK.name]
    assert all(one.device_class == "cuda" for one in chosen(GPU))
    with pytest.raises(Usage, match="no kernel of a device of class cuda is called"):
        self_check(GPU, level="quick", seed=0, timer=ticks(), only="*.cpu")


def test_the_full_level_measures_and_says_what_memory_did_not_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DEPTHS, "full", replace(DEPTHS["quick"], runs=3))
    monkeypatch.setattr(memory, "available_memory", lambda: 1 << 20)
    result = checked(cpu_processor(), KERNELS["reconstruct.NVFP4.BF16.cpu"], "full")
    assert result.outcome == "not_checked"
    assert result.reason is not None
    assert "not checked beyond 2**31 elements: that takes" in result.reason
    assert result.runs == result.equal_runs == 3
    assert result.bytes_per_second is not None
    assert result.copy_ratio is not None


def test_words_beyond_2_31_are_counted() -> None:
    """A matrix of zeros that no memory is spent on, with one weight at its end."""
    question = huge.huge_question(KERNELS["check.NVFP4.cpu"])
    verdict = question.judge(question.ask(cpu_processor()))
    assert verdict.mismatches == 0

    class Wrapping(Cpu):
        """Sees the first 2**27 scales only."""

        def scan_block_scales(self, scales: Any) -> int:
            return super().scan_block_scales(scales.reshape(-1)[: 1 << 27])

    verdict = question.judge(question.ask(Wrapping()))
    assert verdict.first is not None
    assert (verdict.first.expected, verdict.first.found) == ("1", "0")
