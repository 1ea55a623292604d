"""Hadamard rotations: the definition, the inverse, and what has no size."""

import numpy as np
import pytest

from ninfer_core.schemes import hadamard
from tests.schemes.numbers import sylvester


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_the_matrix_is_sylvesters_and_its_own_inverse(size):
    ours = hadamard.transform(np.eye(size, dtype=np.float32), size)
    expected = sylvester(size).astype(np.float32) * np.float32(size**-0.5)
    np.testing.assert_array_equal(ours.view(np.uint32), expected.view(np.uint32))
    np.testing.assert_allclose(ours @ ours, np.eye(size), atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "axis", "size"), [((3, 64), -1, 64), ((128, 5), 0, 32), ((2, 16, 3), 1, 16)]
)
def test_the_transform_is_the_product_with_the_matrix(shape, axis, size):
    values = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    before = values.copy()
    ours = hadamard.transform(values, size, axis)
    runs = np.moveaxis(values, axis, -1).astype(np.float64)
    runs = runs.reshape(*runs.shape[:-1], -1, size) @ sylvester(size) / np.sqrt(size)
    expected = np.moveaxis(runs.reshape(np.moveaxis(values, axis, -1).shape), -1, axis)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=2e-6)
    np.testing.assert_array_equal(values, before)
    assert ours.dtype == np.float32
    assert ours.flags.c_contiguous


@pytest.mark.parametrize("size", [4, 256])
def test_the_error_stays_within_the_stated_bound(size):
    values = np.random.default_rng(size).standard_normal((37, size)) * 10.0 ** np.arange(37)[:, None]
    values = values.astype(np.float32)
    wide = values.astype(np.float64)
    exact = wide @ sylvester(size) / np.sqrt(size)
    bound = (np.log2(size) + 2) * 2.0**-24 * np.abs(wide).sum(1, keepdims=True) / np.sqrt(size)
    off = np.abs(hadamard.transform(values, size) - exact)
    assert np.all(off <= bound * 1.001)
    assert off.max() > 0


def test_integers_are_transformed_exactly_where_the_factor_is_a_power_of_two():
    values = np.random.default_rng(8).integers(-99, 99, (5, 16)).astype(np.float32)
    exact = values @ sylvester(16) / 4
    np.testing.assert_array_equal(hadamard.transform(values, 16), exact)
    np.testing.assert_array_equal(hadamard.transform(hadamard.transform(values, 16), 16), values)


@pytest.mark.parametrize("size", [-4, 0, 3, 12, 16])
def test_runs_that_do_not_tile_the_axis_are_refused(size):
    with pytest.raises(ValueError, match="tile"):
        hadamard.transform(np.zeros((2, 24), np.float32), size)


def test_no_values_stay_no_values():
    assert hadamard.transform(np.zeros((0, 8), np.float32), 8).shape == (0, 8)
