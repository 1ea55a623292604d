"""The nearest vector of the E8P codebook, the plain encoders, and the trellis by its definition."""

import numpy as np

from ninfer_core.schemes import run
from ninfer_core.schemes.data import tables
from ninfer_core.schemes.lattice import e8p, trellis
from ninfer_core.schemes.lattice.quip import QUIP_SHARP_E8P
from ninfer_core.schemes.lattice.spqr import SPQR
from tests.schemes.vectors import FOLDER

EVERY = np.arange(1 << 16, dtype=np.uint16)


def test_the_nearest_vector_is_the_nearest_of_all() -> None:
    rng = np.random.default_rng(8)
    vectors = rng.normal(0, 1.1, (40, 8)).astype(np.float32)
    table = e8p.decode(EVERY).astype(np.float64)
    for vector, index in zip(vectors, e8p.nearest(vectors), strict=True):
        distances = np.square(table - vector).sum(axis=1)
        assert distances[index] <= distances.min() * (1 + 1e-12)


def test_a_vector_of_the_codebook_is_its_own_nearest() -> None:
    chosen = EVERY[::53]
    assert np.array_equal(e8p.decode(e8p.nearest(e8p.decode(chosen))), e8p.decode(chosen))


def test_quip_loses_what_two_bits_lose() -> None:
    """E8P leaves about nine percent of the power of normal weights."""
    values = np.random.default_rng(9).standard_normal((64, 64)).astype(np.float32) * np.float32(0.02)
    decoded = run.decode(QUIP_SHARP_E8P, run.encode(QUIP_SHARP_E8P, values, {}), values.shape, {})
    assert 0.07 < np.square(decoded - values).mean() / np.square(values).mean() < 0.11


def test_spqr_base_is_within_a_step_of_its_scale() -> None:
    rng = np.random.default_rng(10)
    for scale in (0.02, 1.0, 50.0):
        values = rng.standard_normal((48, 32)).astype(np.float32) * np.float32(scale)
        values[0, :16] = scale  # a row of one value, and one of zeros
        values[1, :16] = 0
        parts = run.encode(SPQR, values, {})
        assert run.check(SPQR, parts, values.shape, {}) == []
        error = run.decode(SPQR, parts, values.shape, {}) - values
        assert np.sqrt(np.square(error).mean()) < 0.25 * scale
    for constant in (0.0, 0.5, -3.0):
        values = np.full((16, 16), constant, np.float32)
        decoded = run.decode(SPQR, run.encode(SPQR, values, {}), (16, 16), {})
        assert np.abs(decoded - values).max() <= abs(constant) * 2**-10


def test_a_state_is_the_sixteen_bits_that_end_where_its_symbol_does() -> None:
    rng = np.random.default_rng(11)
    for bits in range(1, 9):
        tile = rng.integers(-(1 << 15), 1 << 15, 16 * bits, np.int16)
        swapped = tile.view(np.uint16).reshape(-1, 2)[:, ::-1].ravel()
        stream = "".join(f"{int(word):016b}" for word in swapped) * 2
        length = 256 * bits
        ends = [length + (index + 1) * bits for index in range(256)]
        expected = [int((stream * 2)[end - 16 : end], 2) for end in ends]
        assert trellis.states(tile, bits).tolist() == expected


def test_every_place_of_a_tile_is_taken_once() -> None:
    assert sorted(trellis.places().tolist()) == list(range(256))
    assert trellis.places()[:10].tolist() == [0, 16, 128, 144, 8, 24, 136, 152, 32, 48]


def test_the_packaged_table_is_the_published_one() -> None:
    assert np.array_equal(
        tables("quip_e8p")["packed_abs"], np.load(FOLDER / "quip_e8p_tables.npz")["packed_abs"]
    )
