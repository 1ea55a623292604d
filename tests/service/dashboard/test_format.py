"""How facts are said."""

import unicodedata
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.dashboard import format as say
from service.dashboard.address import Address, local, written
from service.dashboard.coverage import bar
from service.text import UNKNOWN

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "just now"),
        (9, "just now"),
        (10, "10 seconds ago"),
        (60, "1 minute ago"),
        (3_599, "59 minutes ago"),
        (7_200, "2 hours ago"),
        (86_400, "1 day ago"),
        (44 * 86_400, "44 days ago"),
        (45 * 86_400, "16 October 2026"),
    ],
)
def test_ago(seconds: int, words: str) -> None:
    assert say.ago(NOON - timedelta(seconds=seconds), NOON) == words


@pytest.mark.parametrize(
    ("part", "whole", "words"),
    [
        (0, 0, UNKNOWN),
        (0, 7, "0 %"),
        (1, 10**9, "under 0.1 %"),
        (10**9 - 1, 10**9, "over 99.9 %"),
        (1, 3, "33.3 %"),
        (7, 7, "100 %"),
    ],
)
def test_share_says_all_and_nothing_only_of_all_and_nothing(part: int, whole: int, words: str) -> None:
    assert say.share(part, whole) == words


@given(st.text(), st.integers(8, 80))
def test_clipped_text_is_short_and_harmless(text: str, width: int) -> None:
    shown = say.clipped(text * 3, width)
    assert len(shown) <= width
    assert not {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} & set(map(unicodedata.category, shown))


@given(st.text())
def test_a_name_is_markup_that_says_nothing_but_the_name(text: str) -> None:
    shown = say.name(text)
    assert shown.replace("<wbr>", "").unescape() == say.clipped(text, say.NAME_WIDTH)
    assert "<" not in shown.replace("<wbr>", "")


def test_places_leave_out_what_the_message_says() -> None:
    where = {"lane": 5, "row": 4_096, "sample": [1, 2]}
    assert say.place(where) == "row 4,096, lane 5, sample [1, 2]"
    assert say.place(where, "row 4,096 is bad") == "lane 5, sample [1, 2]"


def test_figures() -> None:
    assert [say.figure(value, ".2e") for value in (None, 0.0, 1e-5)] == ["\u2013", "0", "1.00e\u221205"]


def test_time_left_is_said_once_it_can_be_told() -> None:
    minute = timedelta(minutes=1)
    assert say.left(0, 100, minute) is None
    assert say.left(50, 100, timedelta(seconds=1)) is None
    assert say.left(50, 100, minute) == "about 1 min left"
    assert say.left(90, 100, minute) == "about 7 s left"
    assert say.left(100, 100, minute) is None
    assert say.left(2, 100, timedelta(hours=1)) == "about 49 h left"


def test_addresses_keep_what_is_not_changed() -> None:
    address = Address("/runs", {"state": "failed", "cursor": "x", "q": ""})
    assert address.change(cursor=None) == "/runs?state=failed"
    assert address.change(state="a b&c") == "/runs?state=a+b%26c&cursor=x"
    assert address.without("cursor") == {"state": "failed"}
    assert written("/", {"q": None}) == "/"
    assert local("/runs?x=1#objects") == "/runs?x=1#objects"


def test_every_part_of_the_bar_can_be_seen() -> None:
    counts = {"full": 10**12, "sampled": 1, "reused": 0, "none": 1, "total": 10**12 + 2}
    drawn = bar({"coverage": {"bytes": counts, "objects": counts}})
    assert drawn is not None
    widths = {part.kind: part.width for part in drawn.segments}
    assert widths["reused"] == 0
    assert min(widths["sampled"], widths["none"]) > 0.7
    assert sum(widths.values()) == pytest.approx(100, abs=0.01)
    assert drawn.word == "partly"


@pytest.mark.parametrize(
    ("full", "sampled", "reused", "none", "word"),
    [
        (3, 0, 0, 0, "full"),
        (2, 1, 0, 0, "sampled 1 %"),
        (0, 2, 1, 0, "sampled 1 %"),
        (0, 0, 3, 0, "reused"),
        (2, 0, 1, 0, "partly reused"),
        (2, 0, 0, 1, "partly"),
        (0, 0, 0, 3, "not checked"),
        (0, 0, 0, 0, "\u2013"),
    ],
)
def test_a_bar_in_a_list_has_a_word(full: int, sampled: int, reused: int, none: int, word: str) -> None:
    counts = {
        "full": full,
        "sampled": sampled,
        "reused": reused,
        "none": none,
        "total": full + sampled + reused + none,
    }
    sample = {"fraction": 0.01} if sampled else None
    drawn = bar({"coverage": {"bytes": counts, "objects": counts}, "sample": sample})
    assert drawn is not None
    assert drawn.word == word
    assert bar(None) is None
    assert bar({"error": {}}) is None
