"""FP8 rows encoded, and quantized matrices copied: converted, verified word for word, refused with a place."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ninfer_core.convert import Conversion, convert
from tests.build import codes, plan, recipe, run, tensor, write_checkpoint

FP8, NVFP4 = "FP8_E4M3FN_ROW_BF16S", "NVFP4"
PROFILE = "MAXABS_BF16S_RECIP_E4M3FN_RNE_V1"


def rule(name: str, fmt: str, encode: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"object": name, "value": value, "format": fmt, "encode": encode}


def matrix(op: str, prefix: str, shape: tuple[int, int]) -> dict[str, Any]:
    return {"op": op, "from": "base", "prefix": prefix, "shape": list(shape)}


@pytest.fixture
def sources() -> dict[str, tuple[str, np.ndarray]]:
    rng = np.random.default_rng(30)
    words = (rng.standard_normal((7, 300)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    words[2] = 0x8000  # a row of negative zeros
    return {
        "embedding": ("BF16", words),
        "half": ("F16", rng.standard_normal((3, 130)).astype(np.float16).view(np.uint16)),
        "wide": ("F32", rng.standard_normal((2, 200)).astype(np.float32).view(np.uint32)),
        "q.weight_packed": ("U8", rng.integers(0, 256, (256, 64), np.uint8)),
        "q.weight_scale": ("F8_E4M3", rng.integers(0, 0x7F, (256, 8), np.uint8)),
        "q.weight_global_scale": ("F32", np.array([0x41000000], np.uint32)),
        "k.weight_packed": ("U8", rng.integers(0, 256, (128, 64), np.uint8)),
        "k.weight_scale": ("F8_E4M3", rng.integers(0, 0x7F, (128, 8), np.uint8)),
        "k.weight_global_scale": ("F32", np.array([0x41000000], np.uint32)),
        "up.weight": ("F8_E4M3", rng.integers(0, 0x7F, (9, 70), np.uint8)),
        "up.weight_scale": ("BF16", rng.integers(1, 0x7F80, (9, 1), np.uint16)),
    }


RULES = [
    rule("embedding", FP8, PROFILE, tensor("embedding", (7, 300), "BF16")),
    rule("half", FP8, PROFILE, tensor("half", (3, 130), "F16")),
    rule("wide", FP8, PROFILE, tensor("wide", (2, 200), "F32")),
    rule(
        "qk",
        NVFP4,
        "copy_nvfp4_words",
        {
            "op": "concat_rows",
            "of": [matrix("nvfp4_matrix", "q", (256, 128)), matrix("nvfp4_matrix", "k", (128, 128))],
        },
    ),
    rule(
        "up",
        FP8,
        "copy_fp8_row_words",
        {"op": "rows", "begin": 2, "end": 8, "of": matrix("fp8_row_matrix", "up", (9, 70))},
    ),
]


def converted(folder: Path, sources: dict[str, tuple[str, np.ndarray]]) -> tuple[Conversion, Any]:
    write_checkpoint(folder, sources)
    bound = plan(folder, recipe(RULES))
    return convert(bound, folder / "a.ninfer"), bound


def test_what_is_converted_is_equal_to_its_source(tmp_path: Path, sources) -> None:
    conversion, bound = converted(tmp_path, sources)
    assert conversion.written
    report = run(tmp_path / "a.ninfer", bound)
    assert report.verdict == "passed", [finding.message for finding in report.findings]
    assert codes(report) == set()


@pytest.mark.parametrize(
    ("name", "place", "word", "code", "where"),
    [
        (
            "embedding",
            (4, 299),
            0x7F80,
            "convert.source_not_finite",
            {"row": 4, "column": 299, "word": "0x7f80"},
        ),
        ("embedding", (2, 7), 0x0001, "convert.scale_underflow", {"row": 2}),
        (
            "q.weight_scale",
            (200, 3),
            0x7F,
            "source.bundle_word_invalid",
            {"row": 200, "group": 3, "word": "0x7f"},
        ),
        (
            "k.weight_scale",
            (5, 7),
            0x80,
            "source.bundle_word_invalid",
            {"row": 261, "group": 7, "word": "0x80"},
        ),
        ("up.weight", (3, 60), 0xFF, "source.bundle_word_invalid", {"row": 1, "column": 60, "word": "0xff"}),
        ("up.weight_scale", (7, 0), 0x8001, "source.bundle_word_invalid", {"row": 5, "word": "0x8001"}),
    ],
)
def test_a_word_that_cannot_be_stored_is_refused_with_its_place(
    tmp_path: Path, sources, name: str, place: tuple[int, int], word: int, code: str, where: dict[str, Any]
) -> None:
    sources[name][1][place] = word
    conversion, _ = converted(tmp_path, sources)
    assert not conversion.written
    assert list(tmp_path.glob("*.ninfer*")) == []
    (finding,) = conversion.findings
    assert finding.code == code
    assert {key: finding.where.get(key) for key in where} == where


def test_a_row_under_the_zero_scale_may_hold_zeros_only(tmp_path: Path, sources) -> None:
    sources["up.weight_scale"][1][4] = 0
    sources["up.weight"][1][4] = 0x80
    assert converted(tmp_path, sources)[0].written
    (tmp_path / "a.ninfer").unlink()
    sources["up.weight"][1][4, 9] = 0x81
    (finding,) = converted(tmp_path, sources)[0].findings
    assert (finding.code, finding.object) == ("source.bundle_word_invalid", "up")
    assert (finding.where["row"], finding.where["column"]) == (2, 9)
