"""Digest headers (RFC 9530): what is read, what is refused, what is held against the content."""

import base64
import hashlib

import pytest

from service.api.digests import announced
from service.errors import DigestHeaderMalformed, DigestMismatch

CONTENT = b"content"


def value(name: str, content: bytes = CONTENT) -> str:
    """A member as the header spells it."""
    return f"{name}=:{base64.b64encode(hashlib.new(name.replace('-', ''), content).digest()).decode()}:"


def check(*lines: str) -> None:
    """Hold headers against the content."""
    claims = announced({"Repr-Digest": list(lines)})
    claims.update(memoryview(CONTENT))
    claims.check(hashlib.sha256(CONTENT).hexdigest())


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [value("sha-256")],
        [value("sha-512")],
        [value("sha-256"), value("sha-512")],
        [f"{value('sha-512')} ,\t{value('sha-256')}"],
        [f" {value('sha-256')};q=1; a ;b".replace(" ;b", ";b") + "  "],
        [f"md5=:AAAA:, {value('sha-256')}"],
        ["unixsum=:AAAA:"],
        ["id-sha-256=::"],
        [f"{value('sha-256', b'other')}, {value('sha-256')}"],  # RFC 8941: the last of a key counts
    ],
)
def test_right(lines: list[str]) -> None:
    check(*lines)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "sha-256",
        "sha-256=",
        "sha-256=::",
        "sha-256=x",
        'sha-256="x"',
        "sha-256=:AAAA:",
        "sha-256=:!!!!:",
        f"{value('sha-256')},",
        f",{value('sha-256')}",
        f"{value('sha-256')} {value('sha-512')}",
        value("sha-256").replace("sha-256", "SHA-256"),
        value("sha-256").rstrip(":"),
        value("sha-256").replace("=:", "=:A"),
        f"{value('sha-256')};Q=1",
        "md5=:A:",
        "sha-256=:" + "A" * 100_000,
        ",".join(["a=:AAAA:"] * 10_000) + ";",
    ],
)
def test_malformed(line: str) -> None:
    with pytest.raises(DigestHeaderMalformed):
        check(line)


@pytest.mark.parametrize("name", ["sha-256", "sha-512"])
def test_mismatch_says_both(name: str) -> None:
    right = hashlib.new(name.replace("-", ""), CONTENT).hexdigest()
    wrong = hashlib.new(name.replace("-", ""), b"other").hexdigest()
    with pytest.raises(DigestMismatch) as refused:
        check(value(name, b"other"))
    spelled = name.replace("-", "")
    assert refused.value.facts == {"expected": f"{spelled}:{wrong}", "found": f"{spelled}:{right}"}


def test_one_wrong_digest_among_right_ones() -> None:
    with pytest.raises(DigestMismatch):
        check(value("sha-256"), value("sha-512", b"other"))
