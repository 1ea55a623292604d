"""Every outcome survives JSON, to the last bit."""

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.errors import CannotRead, CutShort, LeadsOutside, OutOfStep
from ninfer_core.findings import FINDINGS, Findings
from ninfer_core.formats import DIRECT, FORMATS
from ninfer_core.identity import FileDigest
from ninfer_core.kernels.values import CodeStatistics, ErrorSums, WordStatistics
from ninfer_core.layouts.base import Block
from ninfer_core.verify.faults import Fault
from ninfer_core.verify.outcomes import Digested, Encoded, Outcome, Part, Scan, from_json, to_json

COUNTS = st.integers(0, 2**62)
TEXTS = st.text(max_size=20)  # half a surrogate pair is drawn too: a file name may hold one
SURROGATES = st.text(st.characters(categories=("Cs", "L")), max_size=5)
NAMES = TEXTS | SURROGATES
WORDS = st.none() | st.integers(0, 2**64 - 1)
PLACES = st.dictionaries(TEXTS, COUNTS | NAMES | st.lists(COUNTS, max_size=3), max_size=4)
CUTS = st.builds(CutShort, NAMES, COUNTS, COUNTS, COUNTS)
UNREAD = CUTS | st.builds(CannotRead, NAMES) | st.builds(LeadsOutside, NAMES)
FAULTS = st.lists(
    st.builds(
        Fault,
        st.sampled_from([definition.name for definition in FINDINGS]),
        COUNTS,
        PLACES,
        TEXTS,
        TEXTS,
        TEXTS,
        st.dictionaries(TEXTS, st.lists(COUNTS, max_size=16).map(tuple), max_size=2),
    ),
    max_size=3,
)
SUMS = st.builds(ErrorSums, COUNTS, *[st.floats()] * 4)
WORD_STATISTICS = st.builds(
    WordStatistics, *[COUNTS] * 5, WORDS, WORDS, st.sampled_from([1 << 15, 1 << 31, 1 << 63]), st.booleans()
)
BLOCKS = st.builds(Block, *[COUNTS] * 4)
SHA256 = st.binary(min_size=32, max_size=32).map(bytes.hex)
FILES = st.builds(FileDigest, NAMES, COUNTS, SHA256)


@st.composite
def code_statistics(draw: st.DrawFn) -> CodeStatistics:
    """Statistics of any quantized format, with any counts."""
    empty = CodeStatistics.empty(draw(st.sampled_from([fmt for fmt in FORMATS if fmt not in DIRECT])))
    counts = draw(st.lists(COUNTS, min_size=empty.histogram.size, max_size=empty.histogram.size))
    tallies = draw(st.lists(COUNTS, min_size=5, max_size=5) | st.just(empty.tallies.tolist()))
    return CodeStatistics(empty.first_code, np.array(counts, np.int64), np.array(tallies, np.int64))


@st.composite
def findings(draw: st.DrawFn) -> Findings:
    """Findings as a scan makes them; some blamed on the source."""
    found = Findings()
    for _ in range(draw(st.integers(0, 3))):
        code = draw(st.sampled_from([definition.name for definition in FINDINGS]))
        place, ordinal = draw(PLACES), draw(st.none() | st.integers(0, 9))
        found.add(code, draw(TEXTS), object=draw(st.none() | TEXTS), where=place, ordinal=ordinal)
    if draw(st.booleans()):
        found.blame("source")
    return found


PARTS = st.builds(
    Part,
    st.none() | SHA256,
    FAULTS,
    st.lists(st.tuples(BLOCKS, code_statistics() | WORD_STATISTICS), max_size=2),
    st.lists(SUMS, max_size=2),
    st.booleans(),
    st.none() | UNREAD,
    st.none() | UNREAD,
)
OUTCOMES = st.one_of(
    PARTS,
    st.builds(Scan, st.none() | SHA256, st.none() | WORD_STATISTICS),
    st.builds(Digested, FILES | UNREAD, st.lists(SHA256 | UNREAD, max_size=3).map(tuple)),
    st.builds(Encoded, FAULTS, COUNTS, COUNTS, st.none() | CUTS),
    FILES,
    findings(),
    UNREAD,
)


def there_and_back(outcome: Outcome) -> Outcome:
    """Through the text of strict JSON."""
    return from_json(json.loads(json.dumps(to_json(outcome), allow_nan=False)))


def spelled(value: Any) -> Any:
    """A value with the types of all that it holds, comparable where arrays, exceptions and NaN are not."""
    kind = type(value).__name__
    if is_dataclass(value):
        return kind, {field.name: spelled(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, BaseException):
        return kind, str(value), value.args, spelled(vars(value))
    if isinstance(value, np.ndarray):
        return kind, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, float):
        return kind, "nan" if math.isnan(value) else struct.pack("<d", value)
    if isinstance(value, Mapping):
        return kind, [(key, spelled(item)) for key, item in value.items()]
    if isinstance(value, set):
        return kind, sorted(value)
    if isinstance(value, list | tuple):
        return kind, [spelled(item) for item in value]
    return kind, value


@given(OUTCOMES)
def test_round_trip(outcome: Outcome):
    assert spelled(there_and_back(outcome)) == spelled(outcome)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -0.0, 5e-324, 0.1, 1.7976931348623157e308])
def test_floats_to_the_last_bit(value: float):
    part = Part(sums=[ErrorSums(1, *[value] * 4)])
    assert spelled(there_and_back(part)) == spelled(part)


def test_sums_that_were_stored_with_a_sum_of_products_are_read():
    stored = [3, *(value.hex() for value in (0.5, 4.0, 5.0, 4.25, 0.25))]
    part = from_json({"kind": "part", "sums": [stored]})
    assert isinstance(part, Part)
    assert part.sums == [ErrorSums(3, 0.5, 4.0, 5.0, 0.25)]
    assert part.sums[0].products == 4.25


def test_findings_count_on_where_they_stopped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ninfer_core.findings.MAX_PER_CODE", 3)
    found = Findings()
    for number in range(5):
        found.add("structure.unreferenced_bytes", "x", where={"offset": number})
    back = there_and_back(found)
    assert isinstance(back, Findings)
    assert back.unlisted == {"structure.unreferenced_bytes": 2}
    for one in (found, back):
        one.add("structure.unreferenced_bytes", "y")
    assert spelled(back) == spelled(found)


class GoneFromTheStore(CannotRead):
    """What a source that is no file of the core's may raise."""

    code = "gone"


def test_what_the_core_does_not_know_becomes_what_it_knows():
    back = there_and_back(Part(error=GoneFromTheStore("blob 7 is gone")))
    assert isinstance(back, Part)
    assert (type(back.error), str(back.error)) == (CannotRead, "blob 7 is gone")
    with pytest.raises(OutOfStep, match="'gone'"):
        from_json({"kind": "gone"})


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "part", "error": {"kind": "scan"}},
        {"kind": "part", "source_error": {"kind": "scan"}},
        {"kind": "digested", "file": {"kind": "file", "file": ["a", 1, "00"]}, "objects": [{"kind": "scan"}]},
    ],
)
def test_what_is_no_reason_is_not_taken_for_none(document: dict[str, Any]):
    with pytest.raises(OutOfStep, match="'scan' is no reason"):
        from_json(document)


def test_what_a_small_sound_tensor_takes():
    """Half a million of them are kept: no member is written that says nothing."""
    assert to_json(Part("00")) == {"kind": "part", "sha256": "00"}
