"""The compiled decoders equal the plain ones on any bytes, however the work is spread; and who loads the compiler."""

import subprocess
import sys

import numpy as np
import pytest

from ninfer_core.schemes import run
from ninfer_core.schemes.compiled import ggml, spread
from ninfer_core.schemes.ggml import FORMS
from ninfer_core.schemes.ggml.tables import looked_up
from tests.kernels.floating_mode import flush_to_zero, flushing
from tests.schemes.ggml.vectors import BLOCK, FORM, cases, random_blocks, words

FAST = [form.name for form in FORMS if form.fast]
# Scales that decide about NaN, infinity, subnormal numbers and signs.
SCALES = (
    0x0000,
    0x8000,
    0x0001,
    0x83FF,
    0x0400,
    0x7BFF,
    0xFBFF,
    0x7C00,
    0xFC00,
    0x7C01,
    0x7E00,
    0xFE00,
    0xFFFF,
)


def compiled(name, payload):
    return ggml.decode(BLOCK[name], payload, looked_up(BLOCK[name].name))


def test_every_kernel_serves_a_form():
    assert {BLOCK[name].name for name in FAST} == set(ggml.KERNELS)
    assert set(FORM) - set(FAST) == {"ggml_bf16"}  # a shift alone


@pytest.mark.parametrize("name", FAST)
def test_compiled_equals_plain(name):
    block = BLOCK[name]
    records = block.records(random_blocks(block, 600, seed=17))
    for first in block.scales:
        for second in block.scales:  # every pair of special scales, where a type has two
            pairs = np.array([(a, b) for a in SCALES for b in SCALES], np.uint16)
            records[first][: len(pairs)], records[second][: len(pairs)] = pairs.T
    payload = records.view(np.uint8)
    plain = run.decode(FORM[name], {"payload": payload}, (600 * block.values,), {}, plain=True)
    assert np.array_equal(words(compiled(name, payload)), words(plain))
    for case in cases(name):
        assert np.array_equal(words(compiled(name, case.payload)), words(case.expected))


def test_large_tensors_go_the_fast_way(monkeypatch):
    name = "ggml_q4_k"
    block = BLOCK[name]
    payload = random_blocks(block, 300)
    taken = []
    real = ggml.decode
    monkeypatch.setattr(ggml, "decode", lambda *arguments: taken.append(1) or real(*arguments))
    shape = (3, 100 * block.values)
    fast = run.decode(FORM[name], {"payload": payload}, shape, {})
    plain = run.decode(FORM[name], {"payload": payload}, shape, {}, plain=True)
    assert taken == [1]
    assert fast.shape == shape
    assert np.array_equal(words(fast), words(plain))


def test_any_array_of_bytes_is_taken():
    payload = random_blocks(BLOCK["ggml_q8_0"], 8)
    expected = words(compiled("ggml_q8_0", payload))
    strided = np.zeros((payload.size, 2), np.uint8)
    strided[:, 0] = payload
    for array in (np.frombuffer(payload.tobytes(), np.uint8), strided[:, 0]):
        assert np.array_equal(words(compiled("ggml_q8_0", array)), expected)
    assert payload.flags.writeable
    assert compiled("ggml_q8_0", payload[:0]).shape == (0,)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 9, 1000])
def test_ranges_cover_every_item_once(monkeypatch, count):
    monkeypatch.setattr(spread, "WORTH_A_THREAD", 1)
    monkeypatch.setattr(spread, "processors", lambda: 3)
    hits = np.zeros(count, np.int64)

    def work(start, stop):
        hits[start:stop] += 1

    spread.over_items(count, 1, work)
    assert (hits == 1).all()


def test_what_a_range_raises_is_raised(monkeypatch):
    monkeypatch.setattr(spread, "WORTH_A_THREAD", 1)
    monkeypatch.setattr(spread, "processors", lambda: 2)

    def work(start, stop):
        if start:
            raise MemoryError

    with pytest.raises(MemoryError):
        spread.over_items(100, 1, work)


def test_forms_load_no_compiler():
    script = (
        "import sys, numpy as np; from ninfer_core.schemes.ggml import FORMS; from ninfer_core.schemes import run\n"
        "run.decode(FORMS[1], {'payload': np.zeros(18, np.uint8)}, (32,), {})\n"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@flushing
def test_a_thread_that_flushes_subnormal_numbers_decodes_the_same():
    """MXFP4 has subnormal values; the other types come near them in their scales."""
    expected, found = {}, {}
    for name, block in BLOCK.items():
        records = block.records(random_blocks(block, 64, seed=5))
        for field in block.scales:
            records[field] &= 0x83FF
        if name == "ggml_mxfp4":
            records["e"] %= 4
        if name == "ggml_bf16":
            records["value"] &= 0x807F
        payload = records.view(np.uint8)

        def decode(name=name, payload=payload, size=64 * block.values):
            plain = run.decode(FORM[name], {"payload": payload}, (size,), {}, plain=True)
            return words(plain), words(compiled(name, payload)) if name in FAST else None

        expected[name] = decode()
        with flush_to_zero():
            found[name] = decode()
    for name, pair in expected.items():
        for one, other in zip(pair, found[name], strict=True):
            assert np.array_equal(one, other), name
    assert (expected["ggml_mxfp4"][0] << 1 >> 24 == 0).sum() > (expected["ggml_mxfp4"][0] << 1 == 0).sum()
