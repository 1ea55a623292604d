"""Any one-byte mutation of a payload is a finding, or another legal word that `parity` reports."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ninfer_core.convert import convert
from ninfer_core.formats import DIRECT, FORMATS, GROUPED
from ninfer_core.layouts import canonical_layout
from tests.build import codes, legal_payload, plan, recipe, run, tensor, write_artifact, write_checkpoint

SHAPES = {"NVFP4": (128, 64), "FP8_E4M3FN_ROW_BF16S": (5, 60)}


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda fmt: fmt.name)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(byte=st.integers(0, 2**31), flip=st.integers(1, 255))
def test_grouped(fmt, tmp_path: Path, byte: int, flip: int):
    folder = tmp_path / fmt.name
    if not folder.exists():
        folder.mkdir()
        words = np.random.default_rng(3).normal(0, 0.02, (3, 130)).astype("<f4")
        words[0, :64] = 0  # a group whose scale is zero
        write_checkpoint(folder, {"w": ("F32", words.view("<u4"))})
        bound = plan(
            folder,
            recipe(
                [
                    {
                        "object": "w",
                        "value": tensor("w", (3, 130), "F32"),
                        "encode": "MAXABS_F16_RECIP_RNE_V1",
                        "format": fmt.name,
                    }
                ]
            ),
        )
        assert convert(bound, folder / "a.ninfer").written
    bound = plan(
        folder,
        recipe(
            [
                {
                    "object": "w",
                    "value": tensor("w", (3, 130), "F32"),
                    "encode": "MAXABS_F16_RECIP_RNE_V1",
                    "format": fmt.name,
                }
            ]
        ),
    )
    content = bytearray((folder / "a.ninfer").read_bytes())
    size = canonical_layout(fmt).encoded_size(fmt, (3, 130))
    place = len(content) - size + byte % size
    content[place] ^= flip
    (folder / "b.ninfer").write_bytes(content)
    report = run(folder / "b.ninfer", bound)
    assert report.verdict == "failed"
    assert codes(report) & {
        "parity.code_mismatch",
        "parity.scale_mismatch",
        "layout.padding_nonzero",
        "layout.gap_nonzero",
    }
    for finding in report.findings:
        if finding.code == "parity.code_mismatch":
            assert finding.where["stored"] != finding.where["derived"]


@pytest.mark.parametrize("fmt", DIRECT, ids=lambda fmt: fmt.name)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(byte=st.integers(0, 2**31), flip=st.integers(1, 255))
def test_direct(fmt, tmp_path: Path, byte: int, flip: int):
    dtype = {"BF16": "BF16", "FP32": "F32", "I32": "I32"}[fmt.name]
    folder = tmp_path / fmt.name
    folder.mkdir(exist_ok=True)
    words = np.random.default_rng(4).integers(0, 1 << fmt.word_bits, (3, 7), np.uint32)
    write_checkpoint(folder, {"w": (dtype, words)})
    bound = plan(
        folder,
        recipe(
            [{"object": "w", "value": tensor("w", (3, 7), dtype), "encode": "copy_words", "format": fmt.name}]
        ),
    )
    content = bytearray(
        write_artifact(
            folder / "a.ninfer",
            {"w": (fmt, (3, 7), words.astype(f"<u{fmt.word_bits // 8}").view(np.uint8).reshape(-1))},
        ).read_bytes()
    )
    assert run(folder / "a.ninfer", bound).verdict == "passed"
    size = 21 * fmt.word_bits // 8
    content[len(content) - size + byte % size] ^= flip
    (folder / "b.ninfer").write_bytes(content)
    report = run(folder / "b.ninfer", bound)
    assert report.verdict == "failed"
    finding = next(finding for finding in report.findings if finding.code == "parity.word_mismatch")
    assert finding.where["index"] == (byte % size) * 8 // fmt.word_bits
    assert finding.count == 1


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), byte=st.integers(0, 2**31), value=st.integers(0, 255))
def test_scan_and_plain_rules_agree(fmt, tmp_path: Path, seed: int, byte: int, value: int):
    """Without a source: the verdict on a mutated payload is that of the rules, spelled out word by word in Python."""
    shape = SHAPES.get(fmt.name, (3, 130))
    payload = legal_payload(fmt, shape, np.random.default_rng(seed))
    payload[byte % payload.size] = value
    path = write_artifact(tmp_path / "m.ninfer", {"w": (fmt, shape, payload)})
    report = run(path)
    expected = plain_rules(fmt, shape, payload)
    found = {code for code in codes(report) if not code.startswith("statistics.")}
    assert found == expected
    assert report.verdict == ("failed" if expected else "passed")


def plain_rules(fmt, shape, payload) -> set[str]:
    """The table "What value checking means per format", one word at a time."""
    layout = canonical_layout(fmt)
    broken = set()
    if fmt in DIRECT:
        return broken
    planes = {
        plane.name: payload[plane.span.offset : plane.span.offset + plane.span.length]
        .view(plane.word)
        .tolist()
        for plane in layout.planes(fmt, shape)
    }
    covered = set()
    for plane in layout.planes(fmt, shape):
        covered |= set(range(plane.span.offset, plane.span.offset + plane.span.length))
    if any(payload[index] for index in range(payload.size) if index not in covered):
        broken.add("layout.gap_nonzero")
    n, k = shape
    if fmt.name == "NVFP4":
        if any(word > 0x7E for word in planes["scales"]):
            broken.add("values.block_scale_invalid")
        if not 0 < planes["divisor"][0] < 0x7F800000:
            broken.add("values.divisor_invalid")
        return broken
    if fmt.name == "FP8_E4M3FN_ROW_BF16S":
        for row in range(n):
            row_codes = planes["codes"][row * k : (row + 1) * k]
            if planes["scales"][row] > 0x7F7F:
                broken.add("values.row_scale_invalid")
            if any(code & 0x7F == 0x7F for code in row_codes):
                broken.add("values.fp8_code_invalid")
            if planes["scales"][row] == 0 and any(code & 0x7F for code in row_codes):
                broken.add("values.zero_row_scale_nonzero_code")
        return broken
    groups = -(-k // 128) * 128 // fmt.group
    for row in range(n):
        for group in range(groups):
            index = row * groups + group
            scale = planes["scales"][index]
            lanes = [lane_code(fmt, planes, index, lane) for lane in range(fmt.group)]
            logical = max(0, min(fmt.group, k - group * fmt.group))
            if any(lanes[logical:]) or (logical == 0 and scale):
                broken.add("layout.padding_nonzero")
            if logical and scale > 0x7BFF:
                broken.add("values.scale_invalid")
            if logical and scale == 0 and any(lanes[:logical]):
                broken.add("values.zero_scale_nonzero_code")
            if any(code < fmt.qmin for code in lanes[:logical]):
                broken.add("values.code_out_of_range")
    return broken


def lane_code(fmt, planes, group: int, lane: int) -> int:
    """One signed code out of the planes, bit by bit as the layout says."""
    if fmt.code_bits == 8:
        word = planes["base"][group * 32 + lane]
    else:
        word = planes["base"][group * 32 + lane // 2] >> (4 * (lane % 2)) & 0xF
        extra = fmt.code_bits - 4
        for bit in range(extra):
            place = lane * extra + bit
            word |= (planes["high"][group * extra * 8 + place // 8] >> (place % 8) & 1) << (4 + bit)
    return word - (1 << fmt.code_bits) if word >> (fmt.code_bits - 1) else word
