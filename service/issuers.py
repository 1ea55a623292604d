"""Keys of the issuers that a project trusts: discovered, fetched through `outbound`, and kept for a while.

Nobody else's word makes us fetch: who asks for keys has found a trust first, and an issuer is asked at most once in
`_REFRESH_SECONDS`, whatever key ids tokens name.
"""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import jwt
import structlog
from jwt import PyJWK

from service.errors import Unavailable
from service.outbound import Outbound, OutboundFailed, OutboundRefused
from service.settings import Settings

_KEPT_SECONDS: Final = 3600.0
_REFRESH_SECONDS: Final = 30.0
_DISCOVERY: Final = "/.well-known/openid-configuration"
_MOST_BYTES: Final = 512 << 10
_MOST_KEYS: Final = 100
_MOST_ISSUERS: Final = 1_000
_RSA_BITS: Final = 2048
# A key answers for its own kind of signature alone; symmetric ones are none of ours.
_ALGORITHMS: Final[Mapping[tuple[str, str | None], frozenset[str]]] = {
    ("RSA", None): frozenset(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
    ("EC", "P-256"): frozenset(("ES256",)),
    ("EC", "P-384"): frozenset(("ES384",)),
    ("EC", "P-521"): frozenset(("ES512",)),
    ("OKP", "Ed25519"): frozenset(("EdDSA",)),
}
ALGORITHMS: Final = frozenset().union(*_ALGORITHMS.values())
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Key:
    """A public key and the algorithms that it may be used with."""

    kid: str | None
    algorithms: frozenset[str]
    document: Mapping[str, Any]

    def of(self, algorithm: str) -> PyJWK:
        """For a check by this algorithm."""
        return PyJWK(dict(self.document), algorithm)


@dataclass(slots=True)
class _Known:
    lock: threading.Lock = field(default_factory=threading.Lock)
    keys: list[Key] = field(default_factory=list)
    fetched_at: float | None = None  # by the monotonic clock
    tried_at: float | None = None


class NotKept(Exception):
    """Keys that have to be asked for, which may take a while."""

    def __init__(self, projects: tuple[str, ...] = ()) -> None:
        """`projects` are those that trust the issuer."""
        super().__init__("keys of an issuer have to be asked for")
        self.projects = projects


class Issuers:
    """What this process knows of issuers."""

    def __init__(self, settings: Settings) -> None:
        """Nothing yet."""
        self._outbound = Outbound(settings)
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}

    def key(self, issuer: str, kid: str | None, algorithm: str, *, ask: bool = True) -> Key | None:
        """The key of an issuer that some project trusts; None when it has none such.

        Raises: Unavailable; NotKept instead of asking the issuer, or waiting for who does, unless `ask`.
        """
        known = self._of(issuer)
        if not known.lock.acquire(blocking=ask):
            raise NotKept
        try:
            moment = time.monotonic()
            if known.fetched_at is None or moment - known.fetched_at > _KEPT_SECONDS:
                self._fetch(issuer, known, moment, ask)
            found = _chosen(known.keys, kid, algorithm)
            if found is None and not _lately(known, moment):  # it may have a new key
                self._fetch(issuer, known, moment, ask)
                found = _chosen(known.keys, kid, algorithm)
        finally:
            known.lock.release()
        return found

    def _of(self, issuer: str) -> _Known:
        with self._lock:
            if issuer not in self._known and len(self._known) >= _MOST_ISSUERS:
                self._known.pop(next(iter(self._known)))
            return self._known.setdefault(issuer, _Known())

    def _fetch(self, issuer: str, known: _Known, moment: float, ask: bool) -> None:
        if _lately(known, moment):
            raise _away()
        if not ask:
            raise NotKept
        known.tried_at = moment
        try:
            known.keys = _keys(self._outbound, issuer)
        except (OutboundFailed, OutboundRefused) as error:
            log.warning("oidc.issuer_away", issuer=issuer, code=error.code, error=str(error))
            raise _away() from None
        known.fetched_at = moment


def _lately(known: _Known, moment: float) -> bool:
    return known.tried_at is not None and moment - known.tried_at < _REFRESH_SECONDS


def _away() -> Unavailable:
    return Unavailable(
        "The keys of the issuer cannot be had just now.", headers={"Retry-After": f"{_REFRESH_SECONDS:.0f}"}
    )


def _chosen(keys: list[Key], kid: str | None, algorithm: str) -> Key | None:
    found = [key for key in keys if algorithm in key.algorithms and (kid is None or key.kid == kid)]
    return found[0] if len(found) == 1 or (found and kid is not None) else None


def _keys(outbound: Outbound, issuer: str) -> list[Key]:
    about = outbound.document(issuer.rstrip("/") + _DISCOVERY, _MOST_BYTES)
    if not isinstance(about, dict) or about.get("issuer") != issuer:
        raise OutboundFailed("its discovery document is that of another issuer")
    where = about.get("jwks_uri")
    if not isinstance(where, str):
        raise OutboundFailed("its discovery document names no keys")
    documents = outbound.document(where, _MOST_BYTES)
    listed = documents.get("keys") if isinstance(documents, dict) else None
    if not isinstance(listed, list) or len(listed) > _MOST_KEYS:
        raise OutboundFailed("its keys are no list of keys")
    return [key for one in listed if (key := _read(one)) is not None]


def _read(document: Any) -> Key | None:
    """A key that can be used; others, of kinds to come or for other ends, are passed over."""
    if not isinstance(document, dict) or document.get("use", "sig") != "sig":
        return None
    kind, curve, kid = (document.get(name) for name in ("kty", "crv", "kid"))
    if not isinstance(kind, str) or not isinstance(curve, str | None) or not isinstance(kid, str | None):
        return None
    algorithms = _ALGORITHMS.get((kind, None if kind == "RSA" else curve), frozenset())
    if "alg" in document:
        algorithms &= frozenset((str(document["alg"]),))
    try:
        for algorithm in sorted(algorithms)[:1]:
            key = PyJWK(document, algorithm).key
            if kind == "RSA" and key.key_size < _RSA_BITS:
                return None
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    public = {
        name: value for name, value in document.items() if name not in ("d", "p", "q", "dp", "dq", "qi")
    }
    return Key(kid, algorithms, public) if algorithms else None
