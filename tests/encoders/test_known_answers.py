"""The meaning of each encoder profile, pinned: whoever changes it needs a new version."""

from collections import Counter

import pytest

from ninfer_core.encoders import PROFILES, EncoderProfile
from ninfer_core.encoders.known_answers import groups, known_answers
from ninfer_core.formats import GROUPED, GroupedFormat
from ninfer_core.identity import canonical_digest

DIGESTS = {
    ("MAXABS_F16_RECIP_RNE_V1", 1): "sha256:6f64ed4c93b665e9aa99168c50a47928c1bb1078c9d671aa5bbed97c25440d99",
}


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_the_answers_never_change(profile: EncoderProfile) -> None:
    assert canonical_digest(known_answers(profile)) == DIGESTS[profile.name, profile.version]


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_the_answers_reach_every_branch(profile: EncoderProfile) -> None:
    answers = known_answers(profile)
    for fmt in profile.formats:
        found = Counter[str]()
        for answer in answers:
            if answer["format"] == fmt.name:
                found[answer.get("refused", "encoded")] += 1
                found["rescued"] += answer.get("rescued", False)
                found["clamped"] += answer.get("clamped", 0) > 0
                found["no scale"] += answer.get("scale") == "0000"
        assert all(found[what] for what in ("encoded", "rescued", "clamped", "no scale"))
        assert found["scale_overflow"] == found["source_not_finite"] == 1


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda fmt: fmt.name)
def test_the_groups_fit(fmt: GroupedFormat) -> None:
    made = list(groups(fmt))
    assert all(1 <= len(words) <= fmt.group for words in made)
    assert all(0 <= word < 1 << 32 for words in made for word in words)
    assert len({tuple(words) for words in made}) == len(made)
