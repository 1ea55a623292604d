"""Every block type against the reference vectors: sizes, values by their words, and bytes of the canonical encoders."""

import hashlib
import json
import math
import re
from importlib.resources import files

import numpy as np
import pytest

from ninfer_core.schemes import run
from ninfer_core.schemes.data import tables
from ninfer_core.schemes.ggml import FORMS
from ninfer_core.schemes.ggml.tables import grid, stq1_0_lanes
from ninfer_core.schemes.structs.check import check_value
from ninfer_core.schemes.structs.model import Value
from ninfer_core.schemes.structs.sizes import size_bytes
from ninfer_core.schemes.structs.view import view
from tests.schemes.ggml.vectors import BLOCK, FORM, cases, of, random_blocks, words
from tests.schemes.vectors import FOLDER, stated

each_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
ENCODED = {
    *("ggml_bf16", "ggml_q4_0", "ggml_q4_1", "ggml_q5_0", "ggml_q5_1", "ggml_q8_0"),
    *("ggml_q1_0", "ggml_tq1_0", "ggml_tq2_0", "ggml_mxfp4"),
}


def test_there_is_a_form_for_every_set_of_vectors():
    sets = {path.stem for path in FOLDER.glob("ggml_*.json")} | {"stq1_0"}
    assert sets == set(FORM)
    assert len(sets) == 26


@each_form
def test_sizes_are_the_published_ones(form):
    block, published = of(form), stated(form.name)
    assert (block.values, block.bytes) == (published["block_size"], published["block_bytes"])
    assert block.id == published.get("ggml_type_id")


@each_form
def test_struct_type_is_accepted_and_its_leaves_are_the_fields(form):
    block = of(form)
    declared = form.declare((3, 2 * block.values), {})
    payload = random_blocks(block, 6)
    assert size_bytes(declared) == payload.size
    assert not check_value(declared.declarations, Value(0, data=payload.tobytes()))
    leaves = {leaf.plan.path: leaf.words for leaf in view(declared, payload)}
    records = block.records(payload)
    for path, found in leaves.items():
        field = records
        for name in path.split("."):
            field = field[name]
        field = np.ascontiguousarray(field)
        assert np.array_equal(field.view(f"u{field.itemsize}"), found)
    assert sum(leaf.nbytes for leaf in leaves.values()) == payload.size


@each_form
def test_decoded_words_are_those_of_the_vectors(form):
    assert len(cases(form.name)) >= 2
    for case in cases(form.name):
        values = run.decode(form, {"payload": case.payload}, case.expected.shape, {}, plain=True)
        assert np.array_equal(words(values), words(case.expected)), case.name


@each_form
def test_rows_are_whole_blocks_one_after_another(form):
    block, case = of(form), cases(form.name)[0]
    blocks = case.payload.size // block.bytes
    for shape in [(2, case.expected.size // 2), (1, blocks, 1, block.values), (blocks, 0), (0, block.values)]:
        payload = case.payload[: math.prod(shape) // block.values * block.bytes]
        values = run.decode(form, {"payload": payload}, shape, {})
        assert values.shape == shape
        assert np.array_equal(words(values).ravel(), words(case.expected[: values.size]))
    assert run.implied_shape(form, {"payload": case.payload}, {}) == case.expected.shape


@each_form
def test_shapes_and_payloads_that_do_not_fit_are_refused(form):
    block, payload = of(form), cases(form.name)[0].payload
    refused = [((), payload), ((2,), payload[:-1]), ((block.values,), payload[: block.bytes - 1])]
    if block.values > 1:
        refused += [
            ((block.values, 1), payload[: block.bytes]),
            ((block.values + 1,), payload[: block.bytes]),
        ]
    refused += [((0, 2**62), payload[:0]), ((2**70, 0), payload[:0]), ((2**41 * block.values,), payload)]
    for shape, bytes_ in refused:
        with pytest.raises(run.SchemeRefused):
            run.decode(form, {"payload": bytes_}, shape, {})
    with pytest.raises(run.SchemeRefused):
        run.implied_shape(form, {"payload": payload[:-1]}, {})
    with pytest.raises(run.SchemeRefused):
        run.implied_shape(form, {"payload": payload[None]}, {})


@pytest.mark.parametrize("name", sorted(ENCODED))
def test_encoded_bytes_are_those_of_the_vectors(name):
    case = cases(name)[0]
    assert case.name == "quantized_normal"
    assert case.source is not None
    rows = case.source.reshape(2, -1)
    assert np.array_equal(run.encode(FORM[name], rows, {})["payload"], case.payload)


def test_which_forms_encode():
    assert {form.name for form in FORMS if form.encode} == ENCODED | {"stq1_0"}
    assert all(form.encoding == ("canonical" if form.encode else "") for form in FORMS)


def test_worked_examples():
    examples = json.loads((FOLDER / "worked_examples.json").read_text())
    assert set(examples) == set(FORM) - {"ggml_bf16"}
    for name, example in examples.items():
        payload = np.frombuffer(bytes.fromhex(example["hex"]), np.uint8)
        values = run.decode(FORM[name], {"payload": payload}, (BLOCK[name].values,), {})
        assert np.array_equal(words(values), words(np.array(example["values"], np.float32))), name


def test_tables_are_those_of_the_vectors_and_of_the_origin_page():
    with np.load(FOLDER / "ggml_iq_grids.npz", allow_pickle=False) as published:
        assert set(published.files) == set(tables("ggml_iq_grids"))
        for name in published.files:
            assert np.array_equal(grid(name), published[name])
    with np.load(FOLDER / "stq1_0_codebook.npz", allow_pickle=False) as published:
        assert np.array_equal(stq1_0_lanes(), published["codebook"])
    folder = files("ninfer_core.schemes.data")
    page = (folder / "ORIGIN.md").read_text()
    listed = dict(re.findall(r"\| `([^`]+\.npz)` \| \d+ \| `([0-9a-f]{64})` \|", page))
    found = {
        entry.name: hashlib.sha256(entry.read_bytes()).hexdigest()
        for entry in folder.iterdir()
        if entry.name.endswith(".npz")
    }
    assert found == listed


def test_no_index_points_outside_of_its_codebook():
    """As many entries as an index has values: all bits set reach the last one."""
    bits = {"iq2_xxs": 8, "iq2_xs": 9, "iq2_s": 10, "iq3_xxs": 8, "iq3_s": 9, "iq1_s": 11, "iq4nl": 4}
    assert {name: len(table) for name, table in tables("ggml_iq_grids").items()} == {
        name: 1 << width for name, width in bits.items()
    }
