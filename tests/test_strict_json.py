"""Strict JSON: what stops the reading, what is collected, and that hostile text costs no more than its size."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.strict_json import Huge, Malformed, Members, Real, parse, show, type_name

BROKEN = [
    (b"", "json_syntax"),
    (b"{", "json_syntax"),
    (b"[1,]", "json_syntax"),
    (b"\xef\xbb\xbf{}", "json_syntax"),
    (b'{"a":01}', "json_syntax"),
    (b'{"a":"\x01"}', "json_syntax"),
    (b"{} {}", "json_syntax"),
    (b"\xff", "json_utf8"),
    (b'"\xc0\xaf"', "json_utf8"),
    (b"NaN", "json_number_not_finite"),
    (b'{"a":-Infinity}', "json_number_not_finite"),
    (b"[" * 100_000, "json_depth"),
    (b'{"a":' * 17 + b"1" + b"}" * 17, "json_depth"),
]


@pytest.mark.parametrize(("text", "kind"), BROKEN, ids=[f"{kind}-{i}" for i, (_, kind) in enumerate(BROKEN)])
def test_stops_at_what_cannot_be_read(text: bytes, kind: str):
    with pytest.raises(Malformed) as error:
        parse(text, 16)
    assert error.value.problem.kind == kind


def test_collects_duplicates_at_every_depth():
    value, problems = parse(rb'{"a":1,"b":[{"x":1,"\u0078":2,"x":3}],"a":2}', 16)
    assert [(problem.kind, problem.path) for problem in problems] == [
        ("json_member_duplicate", ("a",)),
        ("json_member_duplicate", ("b", 0, "x")),
    ]
    assert value["b"][0].duplicates == ("x",)


def test_numbers_are_kept_apart():
    value, problems = parse(b"[1, 1.0, 1e0, -0, 18446744073709551616, 1e999, " + b"9" * 5000 + b"]", 16)
    assert [type(item) for item in value] == [int, Real, Real, int, int, Real, Huge]
    assert [problem.kind for problem in problems] == ["json_number_not_finite"]
    assert problems[0].path == (5,)


def test_half_a_surrogate_pair_is_no_text():
    _, problems = parse(rb'{"\ud800":"ok","b":"\udc00x","c":"\ud83d\ude00"}', 16)
    assert [problem.kind for problem in problems] == ["json_surrogate", "json_surrogate"]


def test_brackets_in_strings_do_not_nest():
    assert parse(json.dumps("[" * 1000 + '\\"[').encode(), 1)[0].count("[") == 1001
    assert parse(b'["\\\\",[]]', 2)[0] == ["\\", []]


@pytest.mark.parametrize(
    "text", [b'"' + b'a\\"' * 500_000, b'"' * 500_001, b"\\" * 500_000, b'{"a":"' + b"\\" * 500_001]
)
def test_hostile_text_takes_time_by_its_size(text: bytes):
    start = time.process_time()
    with pytest.raises(Malformed):
        parse(text, 16)
    assert time.process_time() - start < 5  # quadratic would be hours


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**70), 2**70)
        | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
        ),
        max_leaves=20,
    )
)
def test_reads_what_the_standard_library_writes(value: object):
    parsed, problems = parse(json.dumps(value).encode(), 64)
    assert parsed == value
    assert problems == ()


def test_values_in_messages_are_bounded_and_printable():
    assert show("\x1b[31m\u202e") == r'"\u001b[31m\u202e"'
    assert len(show("x" * 1000)) <= 80
    assert show([1] * 100) == "an array of 100 elements"
    assert show(Members({"a": 1})) == "an object of 1 members"
    assert show(Real("1.50")) == "1.50"
    assert [type_name(value) for value in (None, True, 1, Real("1."), "", [], {})] == [
        "null",
        "boolean",
        "integer",
        "number",
        "string",
        "array",
        "object",
    ]
