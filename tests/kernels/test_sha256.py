"""The paired sha256 against hashlib's, at every length and every split, and the published vectors."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.kernels import sha256
from ninfer_core.kernels.sha256 import Sha256, available, proved, update_both

pytestmark = pytest.mark.skipif(not available(), reason="this processor has no instructions for sha256")

LENGTHS = st.one_of(st.integers(0, 200), st.sampled_from([0, 55, 56, 63, 64, 65, 128, 4095, 4096]))
PIECES = st.lists(st.tuples(st.sampled_from(["one", "other", "both"]), LENGTHS), max_size=12)


def bytes_of(size: int, seed: int = 0) -> memoryview:
    """A buffer that may be written to, as those of a pass; no two blocks of it are alike."""
    return memoryview(bytearray(hashlib.shake_128(seed.to_bytes(4, "little")).digest(size)))


@pytest.mark.parametrize(
    ("message", "digest"),
    [
        (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        ),
        (b"a" * 1_000_000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    ],
    ids=["empty", "abc", "two blocks", "a million"],
)
def test_published_vectors(message: bytes, digest: str):
    alone, one, other = Sha256(), Sha256(), Sha256()
    alone.update(memoryview(message))  # a read-only buffer
    update_both(one, other, memoryview(bytearray(message)))
    assert {alone.hexdigest(), one.hexdigest(), other.hexdigest()} == {digest}


def test_every_length_at_every_place_in_a_block():
    for begin in range(65):
        for length in (0, 1, 64 - begin % 64, 63, 64, 65, 127, 128, 129, 191, 700):
            head, tail = bytes_of(begin, 1), bytes_of(length, 2)
            one, other = Sha256(), Sha256()
            one.update(head)
            update_both(one, other, tail)
            assert one.hexdigest() == hashlib.sha256(bytes(head) + bytes(tail)).hexdigest()
            assert other.hexdigest() == hashlib.sha256(tail).hexdigest()


@settings(max_examples=200, deadline=None)
@given(PIECES, st.integers(0, 63))
def test_equal_to_hashlib_whoever_is_fed(pieces: list[tuple[str, int]], skip: int):
    ours, known = (Sha256(), Sha256()), (hashlib.sha256(), hashlib.sha256())
    for number, (who, length) in enumerate(pieces):
        piece = bytes_of(skip + length, number)[skip:]  # wherever the buffer begins
        fed = {"one": (0,), "other": (1,), "both": (0, 1)}[who]
        for place in fed:
            known[place].update(piece)
        if who == "both":
            update_both(*ours, piece)
        else:
            ours[fed[0]].update(piece)
        assert ours[0].hexdigest() == known[0].hexdigest()
    assert ours[1].hexdigest() == known[1].hexdigest()


def test_it_is_used_where_it_can_be():
    assert proved()


def test_a_digest_that_is_wrong_is_not_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sha256, "_START", [word ^ 1 for word in sha256._START])
    assert not proved.__wrapped__()


def test_without_the_instructions_nothing_is_compiled():
    """Compiled for any processor of the family: the instructions would end the process."""
    code = "from ninfer_core.kernels.sha256 import proved; print(proved())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_CPU_NAME": "generic"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"
