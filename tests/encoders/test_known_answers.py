"""The known answers reach every branch of their encoder; that they never change is the registry lock's to say."""

from collections import Counter

import pytest

from ninfer_core.encoders import MAXABS_BF16S_RECIP_E4M3FN_RNE_V1, MAXABS_F16_RECIP_RNE_V1, PROFILES
from ninfer_core.encoders.known_answers import groups, known_answers, rows
from ninfer_core.formats import GROUPED, GroupedFormat
from ninfer_core.identity import canonical_digest

DIGESTS = {
    ("MAXABS_F16_RECIP_RNE_V1", 1): "sha256:6f64ed4c93b665e9aa99168c50a47928c1bb1078c9d671aa5bbed97c25440d99",
}


def test_the_answers_recorded_by_services_never_change() -> None:
    for (name, version), digest in DIGESTS.items():
        assert PROFILES[name].version == version
        assert canonical_digest(known_answers(PROFILES[name])) == digest


def test_the_answers_of_groups_reach_every_branch() -> None:
    answers = known_answers(MAXABS_F16_RECIP_RNE_V1)
    for fmt in GROUPED:
        found = Counter[str]()
        for answer in answers:
            if answer["format"] == fmt.name:
                found[answer.get("refused", "encoded")] += 1
                found["rescued"] += answer.get("rescued", False)
                found["clamped"] += answer.get("clamped", 0) > 0
                found["no scale"] += answer.get("scale") == "0000"
        assert all(found[what] for what in ("encoded", "rescued", "clamped", "no scale"))
        assert found["scale_overflow"] == found["source_not_finite"] == 1


def test_the_answers_of_rows_reach_every_branch() -> None:
    answers = known_answers(MAXABS_BF16S_RECIP_E4M3FN_RNE_V1)
    refused = Counter(answer.get("refused", "encoded") for answer in answers)
    assert refused["scale_underflow"] == refused["source_not_finite"] == 2
    encoded = [answer for answer in answers if "codes" in answer]
    assert any(answer["clamped"] for answer in encoded)
    assert any(answer["scale"] == "0000" for answer in encoded)
    assert any(0x0020 < int(answer["scale"], 16) < 0x0080 for answer in encoded)  # a subnormal scale
    codes = {code for answer in encoded for code in answer["codes"]}
    assert codes == {f"{code:02x}" for code in range(256) if code & 0x7F != 0x7F}


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda fmt: fmt.name)
def test_the_groups_fit(fmt: GroupedFormat) -> None:
    made = list(groups(fmt))
    assert all(1 <= len(words) <= fmt.group for words in made)
    assert all(0 <= word < 1 << 32 for words in made for word in words)
    assert len({tuple(words) for words in made}) == len(made)


def test_the_rows_are_words() -> None:
    made = list(rows())
    assert all(0 <= word < 1 << 32 for words in made for word in words)
    assert len({tuple(words) for words in made}) == len(made)
