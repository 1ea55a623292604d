"""Scales with two opposite meanings: what the content says, what a reference decides, what stays open."""

import numpy as np
import pytest

from ninfer_core.schemes import run
from ninfer_core.schemes.dialects import examine
from ninfer_core.schemes.floating import NVFP4_CT, NVFP4_MODELOPT
from ninfer_core.schemes.ternary import BITNET_HF

RENAMED = dict(
    zip((part.name for part in NVFP4_CT.parts), (part.name for part in NVFP4_MODELOPT.parts), strict=True)
)


def weights(size, seed=4):
    return (np.random.default_rng(seed).standard_normal((8, 64)) * size).astype(np.float32)


def verdicts(form, parts, params=None, values=None):
    found = examine(form, parts, (8, 64), params or {}, values)
    assert all(finding.code == "scheme.dialect_contradicted" for finding in found)
    return [
        (one.where["stated"], one.where["likely"], one.where["confidence"], one.severity) for one in found
    ]


def mislabelled(values):
    """A tensor of each tool under the names of the other."""
    divided = run.encode(NVFP4_CT, values, {})
    multiplied = run.encode(NVFP4_MODELOPT, values, {})
    back = {theirs: ours for ours, theirs in RENAMED.items()}
    return (
        (NVFP4_MODELOPT, {RENAMED[name]: array for name, array in divided.items()}, "multiplies", "divides"),
        (NVFP4_CT, {back[name]: array for name, array in multiplied.items()}, "divides", "multiplies"),
    )


@pytest.mark.parametrize("form", [NVFP4_CT, NVFP4_MODELOPT], ids=lambda form: form.name)
@pytest.mark.parametrize("size", [1e-4, 0.02, 1.0, 100.0])
def test_tensors_under_their_own_label_are_left_alone(form, size):
    values = weights(size)
    parts = run.encode(form, values, {})
    assert verdicts(form, parts) == []
    assert verdicts(form, parts, values=values) == []


def test_the_content_of_trained_weights_shows_the_other_tool():
    for form, parts, stated, likely in mislabelled(weights(0.02)):
        assert verdicts(form, parts) == [(stated, likely, "strong", "error")]


def test_the_source_decides_where_the_content_is_silent():
    values = weights(
        600.0
    )  # the largest weight meets the product of the largest codes: both readings are near
    for form, parts, stated, likely in mislabelled(values):
        assert verdicts(form, parts) == []
        assert verdicts(form, parts, values=values) == [(stated, likely, "strong", "error")]


def test_the_other_decoder_settles_it():
    values = weights(0.02)
    for form, parts, stated, likely in mislabelled(values):
        right = NVFP4_CT if likely == "divides" else NVFP4_MODELOPT
        names = [part.name for part in right.parts]
        decoded = run.decode(
            right, dict(zip(names, (parts[part.name] for part in form.parts), strict=True)), (8, 64), {}
        )
        decoded = decoded + np.float32(0)  # the tools differ in the sign of zero
        (verdict,) = verdicts(form, parts, values=decoded)
        assert verdict[:2] == (stated, likely)
        assert verdict[2] in ("certain", "strong")


@pytest.mark.parametrize("broken", [0.0, np.nan, np.inf])
def test_a_scale_that_is_none_says_nothing(broken):
    parts = run.encode(NVFP4_CT, weights(1.0), {}) | {"weight_global_scale": np.array([broken], np.float32)}
    assert verdicts(NVFP4_CT, parts) == []


@pytest.mark.parametrize(
    ("magnitude", "confidence", "severity"),
    [(0.005, "strong", "error"), (0.05, "weak", "advisory"), (0.6, None, "")],
)
@pytest.mark.parametrize("wrote", ["bitlinear", "autobitlinear"])
def test_bitnets_direction(magnitude, confidence, severity, wrote):
    levels = np.random.default_rng(6).integers(-1, 2, (8, 64)).astype(np.float32)
    values = levels * np.float32(magnitude)
    other = "autobitlinear" if wrote == "bitlinear" else "bitlinear"
    parts = run.encode(BITNET_HF, values, {"linear_class": wrote})
    assert verdicts(BITNET_HF, parts, {"linear_class": wrote}) == []
    assert verdicts(BITNET_HF, parts, {"linear_class": wrote}, values) == []
    expected = [] if confidence is None else [(other, wrote, confidence, severity)]
    assert verdicts(BITNET_HF, parts, {"linear_class": other}) == expected
    (decided,) = verdicts(
        BITNET_HF,
        parts,
        {"linear_class": other},
        run.decode(BITNET_HF, parts, (8, 64), {"linear_class": wrote}),
    )
    assert decided == (other, wrote, "certain", "error")


@pytest.mark.parametrize("scale", [0.0, np.inf, np.nan])
def test_a_scale_of_bitnet_that_is_none_says_nothing(scale):
    parts = run.encode(BITNET_HF, weights(1.0), {"linear_class": "bitlinear"})
    parts["weight_scale"] = np.array([scale], np.float32)
    for linear_class in ("bitlinear", "autobitlinear"):
        assert verdicts(BITNET_HF, parts, {"linear_class": linear_class}) == []
