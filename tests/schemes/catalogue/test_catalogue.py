"""The catalogue against its forms, against the figures that were published, and against the registries it stands apart from."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.encoders import PROFILES
from ninfer_core.errors import UnknownName, Usage
from ninfer_core.findings import Findings
from ninfer_core.formats import FORMATS
from ninfer_core.layouts import LAYOUTS, RESOURCE_ENCODING
from ninfer_core.recipes import parse_recipe
from ninfer_core.recipes.encoders import COPIES
from ninfer_core.schemes.catalogue import SCHEMES, find, names, near
from ninfer_core.schemes.catalogue.examples import examples_of
from ninfer_core.schemes.catalogue.facts import (
    bits_per_weight,
    form_json,
    part_bits,
    rounded,
    scheme_json,
    span,
)
from ninfer_core.schemes.catalogue.forms import FORMS, form_of, forms_of, schemes_of
from ninfer_core.schemes.catalogue.rules import RULES
from ninfer_core.schemes.catalogue.shown import Shown, matching, profiles
from ninfer_core.schemes.drawing import flat
from ninfer_core.schemes.form import Form
from ninfer_core.schemes.reading import array_type
from ninfer_core.schemes.run import SchemeRefused, implied_shape
from tests.build import ninfer_file
from tests.cli import build
from tests.schemes.vectors import FOLDER as VECTORS
from tests.sources.build import MemoryFiles

K = 4096  # inputs and outputs of an example
ROW = Fraction(16, K)  # a binary16 for each row of it
# What the specification's section 3 states of the catalogue's structures and of files, its formulas at that size.
PUBLISHED: dict[str, tuple[str, tuple[Fraction, ...]]] = {
    "ternary_1_58": ("1.6", (2 + Fraction(8 * 32, K * K),)),
    "aqlm": ("2.0", (2 + ROW + Fraction(2 * 256 * 8 * 16, K * K),)),
    "binary": ("1.0", (1 + Fraction(32, K), Fraction("1.125"))),
    "eetq": ("8.0", (8 + ROW,)),
    "exl3": ("3.0", (3 + 2 * ROW,)),
    "fp6_llm": ("6.0", (6 + ROW,)),
    "fp8_e4m3": ("8.0", (8 + Fraction(32, K * K),)),
    "hqq": ("2.0", (4 + Fraction(32, 64),)),
    "awq": ("4.0", (Fraction("4.15625"),)),
    "gptq": ("4.0", (Fraction("4.125"), Fraction("4.15625"))),
    "int4_symmetric": ("4.0", (Fraction("4.5"),)),
    "int8_per_channel": ("8.0", (8 + Fraction(32, K),)),
    "iq1_s": ("1.4375", (Fraction("1.5625"),)),
    "iq4_nl": ("", (Fraction("4.5"),)),
    "log": ("4.0 to 5.0", ()),
    "matmulnbits": ("4.0", (4 + Fraction(16, 32),)),
    "mxfp4": ("4.25", (Fraction("4.25"),)),
    "mxfp6": ("6.25", (Fraction("6.25"),)),
    "nf4": ("4.0", (4 + Fraction(8, 64) + Fraction(32, 64 * 256), Fraction("4.5"))),
    "nvfp4": ("4.5", (Fraction("4.5"), Fraction("4.5") + Fraction(32, K * K))),
    "q2_k": ("2.0", (Fraction("2.625"),)),
    "q3_k": ("3.0", (Fraction("3.4375"),)),
    "q4_k": ("4.0", (Fraction("4.5"),)),
    "q5_k": ("5.0", (Fraction("5.5"),)),
    "q6_k": ("6.0", (Fraction("6.5625"),)),
    "quip_sharp": ("1.0", (2 + 2 * ROW,)),
    "exl2": ("2.0 to 4.0", ()),
    "spqr": ("3.0 to 3.8", ()),  # 80 bits for each of one outlier in a hundred
    "bitnet_b1_58": ("1.6875", ()),
    "tequila": ("1.6875", ()),
    "stq1_0": ("1.3125", (Fraction("1.3125"),)),
    "tq1_0": ("1.6875", (Fraction("1.6875"),)),
    "tq2_0": ("2.0625", (Fraction("2.0625"),)),
    "paretoq": ("1.6875 to 2.0", ()),
    "quarot": ("4.0", (4 + ROW,)),
}
# Sets of vectors that hold the cases of several forms, or of a form under another name.
SETS = {
    "bitnet": ("bitnet_hf", "bitnet_i2_s"),
    "mxfp4": ("mxfp4", "mxfp4_literal"),
    "mxfp6": ("mxfp6_e3m2", "mxfp6_e2m3", "mxfp6_e3m2_literal", "mxfp6_e2m3_literal"),
    "nvfp4": ("nvfp4_ct", "nvfp4_modelopt", "nvfp4_literal"),
}
FORMAT = {"format": "BF16", "layout": "contiguous-le-v1"}
RENAMED = {"binary_xnor": "binary_literal"}  # what files hold has that name


def vector_sets() -> Iterator[tuple[str, ...]]:
    """The forms that each stored set of vectors is of."""
    for path in sorted(VECTORS.glob("*.json")):
        if path.stem == "worked_examples":
            yield tuple(json.loads(path.read_text()))
        elif path.stem == "seed_literal":
            cases = json.loads(path.read_text())["cases"]
            yield tuple(RENAMED.get(case["case"], case["case"]) for case in cases)
        else:
            yield SETS.get(path.stem, (path.stem,))


def test_the_rows_are_the_table_of_the_seed() -> None:
    rows = [scheme.row for scheme in SCHEMES if scheme.row is not None]
    assert rows == list(range(1, 38))
    assert all(scheme.claimed for scheme in SCHEMES if scheme.row is not None)
    assert len({scheme.title for scheme in SCHEMES}) == len(SCHEMES)


def test_every_rule_that_is_named_is_written_down() -> None:
    assert list(RULES) == [f"R{number}" for number in range(1, 18)]
    texts = [text for scheme in SCHEMES for text in scheme.contradictions]
    texts += [text for form in FORMS for text in (form.summary, form.notes)]
    named = {rule for text in texts for rule in re.findall(r"\bR\d+\b", text)}
    assert named
    assert named <= RULES.keys()


def test_every_form_has_a_scheme_and_every_name_a_form() -> None:
    named = {
        name: kind for scheme in SCHEMES for kind in ("literal", "file") for name in getattr(scheme, kind)
    }
    assert named == {form.name: form.kind for form in FORMS}
    assert all(schemes_of(form) for form in FORMS)


def test_every_set_of_vectors_is_of_forms() -> None:
    sets = list(vector_sets())
    assert len(sets) > 40
    assert not {name for names in sets for name in names if name not in FORMS}


@pytest.mark.parametrize("name", PUBLISHED)
def test_bits_are_the_published_ones(name: str) -> None:
    declared, real = PUBLISHED[name]
    scheme = SCHEMES[name]
    assert span(scheme, "literal") == declared
    if real:
        found = {
            bits_per_weight(form, example)
            for form in forms_of(scheme)
            if form.kind == "file"
            for example in examples_of(form, scheme.name)
        }
        assert found == set(real)


def test_bits_are_written_as_people_write_them() -> None:
    written = [rounded(Fraction(text)) for text in ("8", "4.5", "4.15625", "1.3125", "1/3")]
    assert written == ["8.0", "4.5", "4.1562", "1.3125", "0.3333"]


def test_a_scheme_is_found_by_name_title_spelling_and_form() -> None:
    for scheme in SCHEMES:
        assert find(scheme.name) is scheme
        assert find(scheme.title) is scheme
        assert all(find(alias) is scheme for alias in scheme.aliases)
        assert all(name in find(name).forms or name in SCHEMES for name in scheme.forms)
    with pytest.raises(UnknownName):
        find("q4_K")
    assert "q4_k" in [name.lower() for name in near("q4-k")]
    assert near("q4_0")[0] == "ggml_q4_0"


def test_a_form_is_found_where_there_is_one() -> None:
    assert form_of("gptq").name == "gptq"
    assert form_of("q4_k").name == "ggml_q4_k"
    assert form_of("log4_unsigned").kind == "literal"
    with pytest.raises(Usage, match="nvfp4_modelopt"):
        form_of("nvfp4")
    with pytest.raises(UnknownName):
        form_of("nvfp5")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_every_form_can_be_shown(form: Form) -> None:
    for name in schemes_of(form):
        shown = Shown.of(SCHEMES[name], form)
        assert shown.layout.total == sum(part_bits(form, shown.example).values())
        assert all(box.name for _, box in flat(shown.layout))
    assert json.loads(json.dumps(form_json(form), allow_nan=False))["name"] == form.name


def test_schemes_are_strict_json() -> None:
    for scheme in SCHEMES:
        document = json.loads(json.dumps(scheme_json(scheme), allow_nan=False))
        assert list(document["encode"]) == list(scheme.forms)


def test_schemes_are_picked_by_profile_and_text() -> None:
    assert {"linear", "codebook", "tiling", "sparse", "log", "function", "cast"} <= set(profiles())
    assert [scheme.name for scheme in matching("sparse")] == ["spqr"]
    assert {scheme.name for scheme in matching(text="IQ")} >= {"iq1_s", "iq4_nl", "ggml"}
    assert matching(text="no such scheme") == []


def test_no_name_is_one_of_the_closed_registries() -> None:
    for name in (*names(), *FORMS.names):
        for registry in (FORMATS, LAYOUTS, PROFILES):
            assert name not in registry
            with pytest.raises(UnknownName):
                registry[name]
        assert name not in COPIES
        assert name != RESOURCE_ENCODING


@pytest.mark.parametrize("member", ["encode", "format"])
def test_no_name_is_taken_by_a_recipe(member: str) -> None:
    sound = build.recipe({"w": ((64, 64), "F32", "Q4G64_F16S")})
    findings = Findings()
    assert parse_recipe(json.dumps(sound).encode(), findings) is not None
    for name in names():
        sound["rules"][0] = {**sound["rules"][0], member: name}
        findings = Findings()
        assert parse_recipe(json.dumps(sound).encode(), findings) is None, name
        assert findings.errors
        sound = build.recipe({"w": ((64, 64), "F32", "Q4G64_F16S")})


def test_no_name_is_read_in_an_artifact() -> None:
    entries = [
        {
            "name": f"{member} {name}",
            "kind": "tensor",
            "shape": [1, 1],
            "offset": 0,
            "bytes": 2,
            **FORMAT,
            member: name,
        }
        for name in names()
        for member in FORMAT
    ]
    root = {"identity": {"model_id": "tiny", "weights_id": "test"}, "objects": entries}
    findings = Findings()
    read_artifact(MemoryFiles.of({"w.ninfer": ninfer_file(2, root, bytes(2))}), "w.ninfer", findings)
    refused = Counter(finding.code for finding in findings)
    for member in FORMAT:
        assert refused[f"structure.{member}_unregistered"] == len(names())


def test_what_could_be_taken_for_a_format_says_that_it_is_none() -> None:
    for name, registered in (("nvfp4", "NVFP4"), ("fp8_e4m3", "FP8_E4M3FN_ROW_BF16S")):
        assert registered in SCHEMES[name].apart
        assert registered in FORMATS


@pytest.mark.parametrize("form", [form for form in FORMS if len(form.axes) > 1], ids=lambda form: form.name)
def test_arrays_of_one_axis_imply_no_matrix(form: Form) -> None:
    arrays = {part.name: np.zeros(3, array_type(part.dtypes[0])) for part in form.parts if not part.optional}
    if form.name == "fp8":  # whose words have the shape of the values, whatever it is
        assert implied_shape(form, arrays, {}) == (3,)
        return
    with pytest.raises(SchemeRefused) as refused:
        implied_shape(form, arrays, examples_of(form)[0].params)
    assert [finding.code for finding in refused.value.findings] == ["scheme.shape"]
    with pytest.raises(SchemeRefused) as refused:
        implied_shape(form, {}, examples_of(form)[0].params)
    assert {finding.code for finding in refused.value.findings} == {"scheme.part_missing"}
