"""The cases about words: those of a direct format go through a conversion unchanged, FP8 bytes mean two things."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ninfer_core.convert import convert
from ninfer_core.schemes import run, small_floats
from ninfer_core.schemes.floating import FORMS
from tests.build import plan, recipe, tensor, write_checkpoint
from tests.vectors import load


def test_direct_words_are_copied(tmp_path: Path) -> None:
    words = np.array([int(word, 16) for word in load.case_file("bf16_direct_words.json")["words"]], np.uint16)
    write_checkpoint(tmp_path, {"t": ("BF16", words)})
    value = tensor("t", [len(words)], "BF16")
    rules = [{"object": "o", "format": "BF16", "encode": "copy_words", "value": value}]
    assert convert(plan(tmp_path, recipe(rules)), tmp_path / "a.ninfer").written
    payload = (tmp_path / "a.ninfer").read_bytes()[4096:]
    assert payload[: 2 * len(words)] == words.astype("<u2").tobytes()


@pytest.mark.parametrize("dialect", ["e4m3fn", "e4m3fnuz"])
def test_a_byte_in_two_dialects(dialect: str) -> None:
    table: list[dict[str, Any]] = load.case_file("fp8_two_dialects.json")["table"]
    expected = np.array([float(entry[dialect]) for entry in table], np.float32)
    payload = np.array([int(entry["byte"], 16) for entry in table], np.uint8)
    own = {"e4m3fn": small_floats.E4M3FN, "e4m3fnuz": small_floats.E4M3FNUZ}[dialect]
    (fp8,) = (form for form in FORMS if form.name == "fp8")
    parts: dict[str, NDArray[Any]] = {"payload": payload, "scale": np.ones(1, np.float32)}
    for values in (
        small_floats.decode(own, payload),
        run.decode(fp8, parts, payload.shape, {"dialect": dialect}),
    ):
        numbers = ~np.isnan(expected)
        assert np.array_equal(np.isnan(values), ~numbers)
        assert np.array_equal(values[numbers].view(np.uint32), expected[numbers].view(np.uint32))
