"""Kernels of somebody else: the C example is right, and whatever goes wrong over there stays there and is named."""

import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ninfer_core.errors import CannotRead, Usage
from ninfer_core.formats import (
    FP8_E4M3FN_ROW_BF16S,
    GROUPED,
    NVFP4,
    Q4G64_F16S,
    Q5G64_F16S,
    W8G32_F16S,
)
from ninfer_core.kernels.devices import find_device
from ninfer_core.kernels.values import EncodeFault, GroupedPlanes
from ninfer_core.layouts import ROW_SPLIT
from ninfer_core.selfcheck import foreign
from ninfer_core.selfcheck.offers import foreign_check, offered
from ninfer_core.selfcheck.protocol import ForeignFailed
from ninfer_core.selfcheck.vectors import encode_cases, reconstruct_cases

EXAMPLE = Path(__file__).parents[2] / "examples" / "c-kernel"
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler `cc`")


def built(source: Path, out: Path, *, strict: bool = True) -> Path:
    """The library, compiled as the example says it should be."""
    line = re.search(r"^ \* +(cc .*)$", (EXAMPLE / "grouped.c").read_text(), re.MULTILINE)[1]
    words = line.replace("grouped.so", str(out)).replace("grouped.c", str(source)).split()
    warnings = ["-Wall", "-Wextra", "-Werror", "-pedantic"] if strict else []
    subprocess.run([*words, *warnings, "-I", str(EXAMPLE)], check=True)
    return out


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    kernels = foreign.library(
        built(EXAMPLE / "grouped.c", tmp_path_factory.mktemp("c") / "grouped.so"), time.perf_counter
    )
    yield kernels
    kernels.close()


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    source = Path(__file__).with_name("faulty.c")
    library = built(source, tmp_path_factory.mktemp("c") / "faulty.so")
    kernels = foreign.library(library, time.perf_counter, seconds=3.0)
    yield kernels
    kernels.close()


def encoded(kernels, fmt, shape=(2, 70), dtype="F32"):
    out = GroupedPlanes.empty(fmt, *shape)
    return kernels.encode(fmt, np.full(shape, 0x3F800000, np.uint32), dtype, out)


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda fmt: fmt.name)
def test_the_example_in_c_gives_every_known_answer(example, fmt):
    for case in encode_cases(fmt):
        out = GroupedPlanes.empty(fmt, *case.shape)
        answer = example.encode(fmt, case.source, case.dtype, out)
        if case.refusal is not None:
            assert answer == replace(case.refusal, lane=None, word=0), case.id
            continue
        assert not isinstance(answer, EncodeFault), case.id
        planes = [plane for plane in (out.base, out.high, out.scales) if plane.size]
        spans = [plane.span for plane in ROW_SPLIT.planes(fmt, case.shape)]
        for span, plane in zip(spans, planes, strict=True):
            assert case.payload[span.offset : span.offset + span.length].tobytes() == plane.tobytes(), case.id
    for case in reconstruct_cases(fmt):
        spans = [(plane.span, plane.word) for plane in ROW_SPLIT.planes(fmt, case.shape)]
        parts = [case.payload[s.offset : s.offset + s.length].copy().view(word) for s, word in spans]
        base, *high, scales = parts
        planes = GroupedPlanes(base, high[0] if high else np.empty(0, np.uint8), scales)
        for words in (case.fp32, case.bf16):
            out = np.empty(case.shape, words.dtype.newbyteorder("="))
            example.reconstruct_grouped(fmt, case.shape[1], planes, out)
            assert (out == words).all(), case.id


def test_the_example_offers_what_it_has_and_under_names_of_its_own(example):
    kernels = offered(example)
    assert {kernel.format for kernel in kernels} == set(GROUPED)
    assert {kernel.name.rpartition(".")[2] for kernel in kernels} == {"foreign"}
    assert len({kernel.digest for kernel in kernels}) == len(kernels) == 24
    assert example.device.name == "foreign"
    assert "grouped.so sha256:" in example.device.runtime
    assert example.device != find_device("cpu")


def test_what_a_library_does_not_offer_is_said_and_may_be_required(tmp_path):
    text = (EXAMPLE / "grouped.c").read_text()
    (tmp_path / "typo.c").write_text(text.replace('"Q5G64_F16S"', '"Q5G64F16S"'))
    path = built(tmp_path / "typo.c", tmp_path / "typo.so")
    kernels = foreign.library(path, time.perf_counter)
    check = foreign_check(
        kernels, level="quick", seed=0, only="reconstruct.[QN]*", require=["*.Q[45]*.FP32.*"]
    )
    document = check.as_json()
    names = [
        f"reconstruct.{fmt}.{dtype}.foreign" for dtype in ("FP32", "BF16") for fmt in ("Q5G64_F16S", "NVFP4")
    ]
    assert document["not_offered"] == names
    assert document["missing"] == names[:1]
    assert document["unknown_formats"] == ["Q5G64F16S"]
    assert document["outcome"] == "incomplete"
    with pytest.raises(Usage, match=r"does not offer what .*NVFP4.* names: reconstruct.NVFP4.FP32.foreign"):
        offered(kernels, "*NVFP4*")
    with pytest.raises(Usage, match="--require"):
        foreign_check(kernels, level="quick", seed=0, require=["decode*"])
    none = foreign_check(kernels, level="quick", seed=0, only="*NVFP4*", require=["*"])
    assert (none.outcome, none.kernels) == ("incomplete", ())
    kernels.close()


def test_another_library_is_other_evidence(example, faulty):
    ours, theirs = ({kernel.name: kernel.digest for kernel in offered(one)} for one in (example, faulty))
    assert all(theirs[name] != digest for name, digest in ours.items())


@pytest.mark.parametrize(
    ("fmt", "said"),
    [
        (Q4G64_F16S, "crashed with SIGSEGV"),
        (Q5G64_F16S, "did not come back within 3 s"),
        (GROUPED[2], "wrote outside of its output"),
        (W8G32_F16S, "ended its process with code 7"),
    ],
    ids=["crash", "hang", "bounds", "exit"],
)
def test_what_goes_wrong_in_a_library_is_an_answer_and_the_next_call_works(faulty, fmt, said):
    for _ in range(1 if "back" in said else 2):
        with pytest.raises(ForeignFailed, match=said):
            encoded(faulty, fmt)


def test_a_library_that_changes_its_input_is_told(faulty):
    codes, scales, ones = (
        np.empty((2, 9), np.uint8),
        np.empty(2, np.uint16),
        np.full((2, 9), 0x3F800000, np.uint32),
    )
    with pytest.raises(ForeignFailed, match="changed its input"):
        faulty.encode_rows(ones, "F32", faulty.largest_magnitudes(ones, "F32"), codes, scales)


def test_failures_of_their_own_and_unknown_answers_are_failures(faulty):
    out, planes = np.empty((1, 64), np.uint32), GroupedPlanes.empty(Q4G64_F16S, 1, 64)
    with pytest.raises(ForeignFailed, match="status 5"):
        faulty.reconstruct_grouped(Q4G64_F16S, 64, planes, out)
    with pytest.raises(ForeignFailed, match="status 99"):
        faulty.reconstruct_row(np.zeros((1, 64), np.uint8), np.zeros(1, np.uint16), out)
    pairs = {(kernel.operation, kernel.format) for kernel in offered(faulty)}
    assert ("reconstruct", NVFP4) not in pairs
    assert ("reconstruct", FP8_E4M3FN_ROW_BF16S) in pairs


FAULTS = {
    "division for the reciprocal": ("* inverse)", "/ float_of(widen16(scale)))", "encode.Q4G64_F16S.F32"),
    "swapped nibbles": ("(lane % 2 * 4)); /* the", "(4 - lane % 2 * 4)); /* the", "encode.Q4G64_F16S.F32"),
    "flush to zero": (
        "return sign | word_of((float)fraction * 0x1p-24f);",
        "return sign;",
        "reconstruct.W8G32_F16S.FP32",
    ),
    "a tail that is a lane short": (
        "lane < lanes; lane++) {\n                float",
        "lane + 1 < lanes; lane++) {\n                float",
        "encode.W8G32_F16S.BF16",
    ),
    # No known answer of these source types shows them.
    "no rescue": ("scale = 1; /*", "continue; /*", "encode.W8G32_F16S.F16"),
    "a clamp that is symmetrical": ("(-f->qmax - 1)", "-f->qmax", "encode.Q4G64_F16S.F16"),
    "subnormal source words are zero": (
        "return (uint32_t)((const uint16_t *)source)[i] << 16;",
        "return (((const uint16_t *)source)[i] & 0x7f80 ? (uint32_t)((const uint16_t *)source)[i] : 0) << 16;",
        "encode.Q4G64_F16S.BF16",
    ),
    "a tie of subnormal scales goes up": (
        "(rest == half && (kept & 1))",
        "(rest == half && (exponent <= 0 || (kept & 1)))",
        "encode.Q6G64_F16S.F32",
    ),
    "binary64 beyond binary32 is its largest number": (
        "return word_of((float)((const double *)source)[i]);",
        "return word_of((float)fmax(-0x1.fffffep127, fmin(((const double *)source)[i], 0x1.fffffep127)));",
        "encode.Q5G64_F16S.F64",
    ),
    "the last refusal": (
        "            if (amax >= 0x7f800000)\n                return NINFER_SOURCE_NOT_FINITE;\n",
        "            if (amax >= 0x7f800000) {\n"
        "                uint64_t later[2];\n"
        "                for (uint64_t i = row + 1; i < n; i++)\n"
        "                    if (ninfer_encode(format, dtype, (const char *)source + i * k * 4, 1, k, payload,\n"
        "                                      layout_of(f, 1, k).size, later))\n"
        "                        refused[0] = i, refused[1] = later[1];\n"
        "                return NINFER_SOURCE_NOT_FINITE;\n"
        "            }\n",
        "encode.Q4G64_F16S.F32",
    ),
    "the same source twice": (
        "    memset(payload, 0, payload_bytes);",
        "    memset(payload, 0, payload_bytes);\n"
        "    static uint64_t last;\n"
        "    uint64_t sum = n;\n"
        "    for (uint64_t i = 0; i < 2 * n * k; i++)\n"
        "        sum = sum * 31 + ((const uint8_t *)source)[i];\n"
        "    if (sum == last)\n"
        "        return NINFER_OK;\n"
        "    last = sum;",
        "encode.Q6G64_F16S.BF16",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_a_library_is_found_and_placed(tmp_path, fault):
    right, wrong, name = FAULTS[fault]
    text = (EXAMPLE / "grouped.c").read_text()
    assert text.count(right) == 1, fault
    (tmp_path / "wrong.c").write_text(text.replace(right, wrong))
    library = foreign.library(
        built(tmp_path / "wrong.c", tmp_path / "wrong.so", strict=False), time.perf_counter
    )
    check = foreign_check(library, level="quick", seed=1, only=f"{name}.foreign")
    (result,) = check.kernels
    assert (check.outcome, result.outcome) == ("failed", "failed")
    assert result.kernel.name == f"{name}.foreign"
    assert "row" in result.first_mismatch.where or "row" in result.first_mismatch.expected
    assert result.first_mismatch.expected != result.first_mismatch.found


def test_a_crash_is_the_outcome_of_its_kernel_and_the_next_has_its_turn(faulty):
    check = foreign_check(faulty, level="quick", seed=1, only="*.[QW][48]G*.F32.foreign")
    (first, second) = check.kernels
    assert (first.outcome, second.outcome) == ("error", "error")
    assert "SIGSEGV" in first.reason
    assert "code 7" in second.reason
    assert check.as_json()["device"]["name"] == "foreign"


def test_what_passes_behind_the_protocol_is_the_oracle_itself(monkeypatch):
    monkeypatch.chdir(EXAMPLE.parents[1])
    ours = foreign.python("tests.selfcheck.behind:Oracles", time.perf_counter)
    # The library in C shows the way of the grouped formats.
    check = foreign_check(ours, level="quick", seed=1, only="*.[FN][PV][8F]*")
    assert {result.outcome for result in check.kernels} == {"passed"}, check.kernels
    assert {result.kernel.format for result in check.kernels} == {NVFP4, FP8_E4M3FN_ROW_BF16S}
    assert {result.kernel.operation for result in check.kernels} == {"encode", "reconstruct"}


def test_time_is_that_of_the_kernel_and_not_of_the_way_to_it(example):
    begin, start = example.clock(), time.perf_counter()
    for _ in range(20):
        encoded(example, W8G32_F16S, (1, 1))
    spent, passed = example.clock() - begin, time.perf_counter() - start
    assert 0 < spent < passed


def test_a_library_must_be_one(tmp_path):
    with pytest.raises(CannotRead):
        foreign.library(tmp_path / "absent.so", time.perf_counter)
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(ForeignFailed, match="cannot be loaded"):
        offered(foreign.library(tmp_path / "text.so", time.perf_counter))
    source = tmp_path / "old.c"
    source.write_text("int ninfer_abi(void);\nint ninfer_abi(void) { return 9; }\n")
    with pytest.raises(ForeignFailed, match="version 9"):
        offered(foreign.library(built(source, tmp_path / "old.so"), time.perf_counter))


PYTHON = """
import os
import time

import numpy as np

print("kernels may say what they like")


class W8:
    def decode(self, format, payload, shape, dtype):
        if format != "W8G32_F16S" or dtype != "FP32":
            return NotImplemented
        n, k = shape
        groups = -(-k // 128) * 4
        codes = payload[: n * groups * 32].view(np.int8).reshape(n, groups * 32)
        start = -(-codes.size // 256) * 256
        scales = payload[start:].view("<f2").astype(np.float32).reshape(n, groups)
        return (codes * np.repeat(scales, 32, axis=1))[:, :k].astype(np.float32)


class Refusing:
    def encode(self, format, dtype, source):
        if source[0, 0] & 0x7F80 == 0x7F80:
            return ("source_not_finite", 0, 0)
        if source.size == 2:
            source[0, 0] = 1
        return b"short"


class Forking:
    def encode(self, format, dtype, source):
        if source.size == 2:
            os.fork()
        return ("source_not_finite", 0.5, 0) if source.size == 3 else bytes(260)  # a row of Q4


class Mistaken:
    def encode(self, format, dtype, source):
        answers = [("no", 0, 0), ("scale_overflow", 0), None]
        return answers[source.size - 1]


class Hanging:
    def encode(self, format, dtype, source):
        if (format, dtype) != ("Q4G64_F16S", "F32"):
            return NotImplemented
        with open("calls", "a") as calls:
            calls.write("1")
        time.sleep(100)


refusing = Refusing()
nothing = object()
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(PYTHON)
    monkeypatch.chdir(tmp_path)


def test_an_object_in_python_is_checked_like_a_library(module, capfd):
    kernels = foreign.python("mine:W8", time.perf_counter)
    assert [kernel.name for kernel in offered(kernels)] == ["reconstruct.W8G32_F16S.FP32.foreign"]
    for case in reconstruct_cases(W8G32_F16S):
        spans = [(plane.span, plane.word) for plane in ROW_SPLIT.planes(W8G32_F16S, case.shape)]
        base, scales = (case.payload[s.offset : s.offset + s.length].copy().view(word) for s, word in spans)
        out = np.empty(case.shape, np.uint32)
        kernels.reconstruct_grouped(
            W8G32_F16S, case.shape[1], GroupedPlanes(base, np.empty(0, np.uint8), scales), out
        )
        # A zero has a sign of its own only in formats whose codes have one: -0.0 may not come out.
        assert (out == case.fp32).all(), case.id
    kernels.close()
    assert capfd.readouterr().out == ""


def test_refusals_and_errors_of_an_object(module):
    kernels = foreign.python("mine:refusing", time.perf_counter)
    nan, out = np.full((1, 3), 0x7FC0, np.uint16), GroupedPlanes.empty(Q4G64_F16S, 1, 3)
    assert kernels.encode(Q4G64_F16S, nan, "BF16", out) == EncodeFault("source_not_finite", 0, 0, None, 0)
    with pytest.raises(ForeignFailed, match="5 bytes"):
        kernels.encode(Q4G64_F16S, nan & 0, "BF16", out)
    with pytest.raises(ForeignFailed, match="read-only"):
        kernels.encode(Q4G64_F16S, np.zeros((1, 2), np.uint16), "BF16", GroupedPlanes.empty(Q4G64_F16S, 1, 2))
    kernels.close()


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (1, "'no' is no refusal; it is one of 'source_not_finite', 'scale_overflow', 'scale_underflow'"),
        (2, "a tuple of 2; a refusal is (name, row, group)"),
        (3, "return NotImplemented"),
        (4, "IndexError: list index out of range (/"),
        (4, "mine.py, line "),
    ],
)
def test_a_mistake_in_the_answer_of_an_object_is_explained(module, columns, said):
    kernels = foreign.python("mine:Mistaken", time.perf_counter)
    with pytest.raises(ForeignFailed, match=re.escape(said)):
        encoded(kernels, Q4G64_F16S, (1, columns))
    kernels.close()


def test_what_hangs_when_it_is_asked_what_it_offers_is_not_asked_again(module):
    kernels = foreign.python("mine:Hanging", time.perf_counter, seconds=0.5)
    (result,) = foreign_check(kernels, level="quick", seed=0, only="encode.Q4*").kernels
    assert result.outcome == "error"
    assert "did not come back" in result.reason
    assert Path("calls").read_text() == "1"


def test_a_second_answer_is_not_taken_for_that_of_another_call(module):
    kernels = foreign.python("mine:Forking", time.perf_counter)
    encoded(kernels, Q4G64_F16S, (1, 1))
    with pytest.raises(ForeignFailed, match="more than once"):
        [encoded(kernels, Q4G64_F16S, (1, 2)) for _ in range(3)]  # the second answer may come late
    encoded(kernels, Q4G64_F16S, (1, 1))
    with pytest.raises(ForeignFailed, match="'float' object"):  # a row and a half
        encoded(kernels, Q4G64_F16S, (1, 3))
    kernels.close()


@pytest.mark.parametrize(
    ("target", "said"), [("mine:absent", "absent"), ("gone:x", "gone"), ("mine:nothing", "neither")]
)
def test_an_object_must_be_there(module, target, said):
    with pytest.raises(ForeignFailed, match=said):
        offered(foreign.python(target, time.perf_counter))


@pytest.mark.parametrize("target", ["mine", ":", "a/b:c", "mine:", "-m:x"])
def test_an_object_has_a_name_of_two_parts(target):
    with pytest.raises(Usage):
        foreign.python(target, time.perf_counter)
