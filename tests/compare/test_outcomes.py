"""Every outcome of a comparison survives JSON, to the last bit."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.compare.outcomes import Changes, Compared, from_json, to_json
from ninfer_core.errors import CannotRead, CutShort, OutOfStep
from ninfer_core.identity import FileDigest
from tests.verify.test_outcomes import COUNTS, SHA256, SUMS, TEXTS, UNREAD, spelled

CHANGES = st.builds(Changes, COUNTS, COUNTS, COUNTS, COUNTS, st.booleans(), st.none() | COUNTS)
COMPARED = st.builds(
    Compared,
    st.none() | SHA256,
    st.none() | SHA256,
    st.none() | CHANGES,
    st.none() | SUMS,
    TEXTS,
    st.none() | UNREAD,
    st.none() | UNREAD,
)


@given(COMPARED | st.builds(FileDigest, TEXTS, COUNTS, SHA256) | UNREAD)
def test_every_outcome_comes_back(outcome):
    text = json.dumps(to_json(outcome), allow_nan=False)
    assert spelled(from_json(json.loads(text))) == spelled(outcome)


def test_other_kinds_are_refused():
    with pytest.raises(OutOfStep):
        from_json({"kind": "other"})
    with pytest.raises(OutOfStep):
        from_json({"kind": "compared", "a_error": {"kind": "part"}})


def test_changes_add_up_in_order():
    first, second = Changes(4, 0, 2, 1), Changes(4, 2, 2, 0, True, 5)
    assert first.plus(second) == Changes(8, 2, 4, 1, True, 5)
    assert second.plus(Changes(1, 1, first=9)).first == 5
    assert not Changes(4, scales=2).any
    assert Changes(4, changed_scales=1).any
    assert Changes(4, divisor_changed=True).any


def test_reasons_keep_their_kind():
    outcome = Compared(a_error=CutShort("x", 1, 2, 3), b_error=CannotRead("gone"))
    found = from_json(to_json(outcome))
    assert isinstance(found, Compared)
    assert isinstance(found.a_error, CutShort)
    assert isinstance(found.b_error, CannotRead)
