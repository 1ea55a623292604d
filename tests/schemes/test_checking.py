"""The answer about stored arrays: what was looked at, what was found, and how far it goes."""

import json
from typing import Any

import numpy as np
import pytest

from ninfer_core.schemes.catalogue.forms import FORMS
from ninfer_core.schemes.checking import Checked, check_parts, checked_json
from ninfer_core.schemes.run import complete, encode
from tests.schemes.vectors import cases

Q4_0 = FORMS["ggml_q4_0"]


def gptq(**more: Any) -> Checked:
    """A stored tensor of the vectors, by its own label and values."""
    case = next(one for one in cases("gptq") if one.name == "b2_g32")
    parts = {name: case.arrays[name] for name in ("qweight", "qzeros", "scales", "g_idx")}
    params = {"bits": 2, "group_size": 32, "symmetric": False}
    return check_parts(
        FORMS[more.pop("form", "gptq")], parts, params, reference=case.arrays["expected_KxN"], **more
    )


def codes(checked: Checked) -> list[str]:
    """Every code once, in order."""
    return list(dict.fromkeys(one.code for one in checked.findings))


def test_everything_is_right() -> None:
    checked = gptq()
    assert (checked.verdict, checked.words, checked.shape) == ("passed", "full", (128, 64))
    document = json.loads(json.dumps(checked_json(checked), allow_nan=False))
    assert document["coverage"]["bytes"]["full"] == sum(part["bytes"] for part in document["parts"].values())
    assert (document["coverage"]["values"], document["reference"]["differing"]) == ("full", 0)
    assert document["params"] == {"bits": 2, "group_size": 32, "symmetric": False}
    [convention] = document["conventions"]
    assert (convention["part"], convention["stated"]) == ("qzeros", "gptq")


def test_parameters_that_were_left_out_are_named() -> None:
    form = FORMS["gptq"]
    parts = encode(form, np.zeros((128, 8), np.float32), {})
    assert checked_json(check_parts(form, parts, {}))["params"] == complete(form, {})


def test_values_tell_the_convention() -> None:
    checked = gptq(form="gptq_v2")  # version 1 stores zero points less one
    assert checked.verdict == "failed"
    assert set(codes(checked)) == {"scheme.dialect_contradicted", "scheme.value_differs"}
    certain = next(one for one in checked.findings if one.code == "scheme.dialect_contradicted")
    assert certain.where["confidence"] == "certain"


@pytest.mark.parametrize(
    ("parts", "shape", "code"),
    [
        ({}, None, "scheme.part_missing"),
        ({}, (1, 32), "scheme.part_missing"),
        ({"payload": np.zeros(18, np.int8)}, (1, 32), "scheme.part_dtype"),
        ({"payload": np.zeros(36, np.uint8)}, (1, 32), "scheme.part_shape"),
        ({"payload": np.zeros(18, np.uint8), "more": np.zeros(1, np.uint8)}, (1, 32), "scheme.part_unknown"),
        ({"payload": np.zeros(18, np.uint8)}, (1, 31), "scheme.shape"),
    ],
)
def test_parts_that_do_not_fit_have_no_word_judged(
    parts: dict[str, Any], shape: tuple[int, ...] | None, code: str
) -> None:
    checked = check_parts(Q4_0, parts, {}, shape, reference=np.zeros((2, 2), np.float32))
    assert (checked.verdict, checked.words, checked.against_reference) == ("failed", "none", None)
    assert codes(checked) == [code]
    assert checked_json(checked)["coverage"]["bytes"]["full"] == 0


def test_parameters_that_a_profile_does_not_take_have_no_word_judged() -> None:
    form, payload = FORMS["int8_per_channel_vector_scale"], {"payload": np.zeros(512, np.uint8)}
    checked = check_parts(form, payload, {"scale": [0.5] * 3}, (16, 32))
    assert (checked.verdict, checked.words, codes(checked)) == ("failed", "none", ["profile.scale_illegal"])
    assert checked_json(checked)["coverage"]["bytes"]["full"] == 0
    assert check_parts(form, payload, {"scale": [0.5] * 16}, (16, 32)).words == "full"


def test_a_number_that_binary64_does_not_hold_is_none() -> None:
    checked = check_parts(FORMS["int8_symmetric"], {"payload": np.zeros(4, np.uint8)}, {"scale": 10**400})
    assert codes(checked) == ["scheme.parameter"]


def test_a_source_fails_nothing() -> None:
    case = next(one for one in cases("ggml_q4_0") if one.name == "quantized_normal")
    checked = check_parts(Q4_0, {"payload": case.arrays["payload"]}, {}, source=case.arrays["source"])
    assert checked.verdict == "passed"
    assert checked.against_source is not None
    assert checked.against_source.differing > 0
    assert checked_json(checked)["coverage"]["values"] == "none"  # nothing said what they should be
    wrong = check_parts(Q4_0, {"payload": case.arrays["payload"]}, {}, source=case.arrays["source"][:-1])
    assert codes(wrong) == ["scheme.reference_mismatch"]


def test_parameters_are_judged_with_the_rest() -> None:
    checked = check_parts(FORMS["gptq"], {}, {"bits": 5, "width": 4}, (128, 64))
    assert codes(checked) == ["scheme.parameter"]
    assert len(checked.findings) == 2


def test_parts_without_values_pass_only_where_none_are_meant() -> None:
    form, nothing = FORMS["ggml_q4_0"], {"payload": np.zeros(0, np.uint8)}
    assert codes(check_parts(form, nothing, {})) == ["scheme.shape"]
    assert check_parts(form, nothing, {}, (0,)).verdict == "passed"
