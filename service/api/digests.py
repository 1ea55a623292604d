"""`Repr-Digest` and `Content-Digest` (RFC 9530): structured dictionaries (RFC 8941) of byte sequences by algorithm."""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from service.errors import DigestHeaderMalformed, DigestMismatch, Fault

HEADERS: Final = ("Repr-Digest", "Content-Digest")
_SIZES: Final = {"sha-256": 32, "sha-512": 64}  # what is checked; other algorithms are left alone

_BARE = r'(?::[A-Za-z0-9+/=]*:|\?[01]|-?[0-9]+(?:\.[0-9]+)?|"(?:[ !#-\[\]-~]|\\["\\])*"|[A-Za-z*][!#$%&\'*+.^_`|~:/\w-]*)'
_KEY = r"[a-z*][a-z0-9_.*-]*"
_MEMBER: Final = re.compile(rf"({_KEY})=(:[A-Za-z0-9+/]*={{0,2}}:)((?:; *{_KEY}(?:={_BARE})?)*)", re.ASCII)
_BETWEEN: Final = re.compile(r"[ \t]*,[ \t]*")


def announced(headers: Mapping[str, list[str]]) -> "Announced":
    """What the headers say of the content. Raises: DigestHeaderMalformed."""
    claims: list[tuple[str, str, bytes]] = []
    for header, lines in headers.items():
        if lines:
            claims += [(header, name, value) for name, value in _dictionary(header, ", ".join(lines)).items()]
    return Announced(claims)


class Announced:
    """Digests to be held against the content; sha256 is taken anyway, others only when they are announced."""

    def __init__(self, claims: list[tuple[str, str, bytes]]) -> None:
        self._claims = claims
        self._sha512 = hashlib.sha512() if any(name == "sha-512" for _, name, _ in claims) else None

    def update(self, content: memoryview) -> None:
        """Hash what the writer does not."""
        if self._sha512 is not None:
            self._sha512.update(content)

    def check(self, sha256: str) -> None:
        """Hold every claim against the whole content. Raises: DigestMismatch."""
        found = {"sha-256": bytes.fromhex(sha256)}
        if self._sha512 is not None:
            found["sha-512"] = self._sha512.digest()
        faults = [
            Fault("header", header, f"{name} of the content is {found[name].hex()}, not {value.hex()}")
            for header, name, value in self._claims
            if found[name] != value
        ]
        if not faults:
            return
        name, value = next((name, value) for _, name, value in self._claims if found[name] != value)
        facts: dict[str, Any] = {"expected": _spelled(name, value), "found": _spelled(name, found[name])}
        raise DigestMismatch("The content that arrived has another digest.", *faults, **facts)


def _dictionary(header: str, text: str) -> dict[str, bytes]:
    values: dict[str, bytes] = {}
    at, text = 0, text.strip(" ")
    while True:
        member = _MEMBER.match(text, at)
        if member is None:
            raise _malformed(header, f"no `algorithm=:base64:` at character {at + 1}")
        name = member[1]
        try:
            value = base64.b64decode(member[2][1:-1], validate=True)
        except binascii.Error:
            raise _malformed(header, f"the value of {name} is no base64") from None
        if name in _SIZES:
            if len(value) != _SIZES[name]:
                raise _malformed(header, f"a {name} has {_SIZES[name]} bytes, not {len(value)}")
            values[name] = value  # of a key given twice the last one counts (RFC 8941)
        at = member.end()
        if at == len(text):
            return values
        between = _BETWEEN.match(text, at)
        if between is None:
            raise _malformed(header, f"no comma at character {at + 1}")
        at = between.end()


def _malformed(header: str, why: str) -> DigestHeaderMalformed:
    return DigestHeaderMalformed(f"{header} cannot be read: {why}.", Fault("header", header, why))


def _spelled(name: str, value: bytes) -> str:
    return f"{name.replace('-', '')}:{value.hex()}"
