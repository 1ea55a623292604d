"""Signed identities (OpenID Connect) for CI: a job that holds no secret of ours shows who it is, and gets a token for a while.

A trust says whose word counts, for which audience, and which claims must be just so. Whatever is wrong with an identity,
its sender hears the same; the log says what it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NoReturn

import jwt
import structlog
from jwt.utils import base64url_decode

from ninfer_core.strict_json import Json, Malformed, parse
from service import auth
from service.errors import Fault, IdentityRefused, InvalidRequest
from service.issuers import ALGORITHMS, Issuers, NotKept
from service.records import audit, trusts
from service.records.database import Database
from service.records.models import Trust
from service.records.types import now
from service.text import clean

LIFETIME: Final = timedelta(hours=1)
MOST_CHARACTERS: Final = 16_000  # of a signed identity
_LEEWAY_SECONDS: Final = 30
_REQUIRED: Final = ("exp", "iat", "iss", "aud", "sub")
_SHOWN: Final = 80  # characters of a subject in the name of a token
_NOTED: Final = ("repository", "ref", "workflow_ref", "job_workflow_ref", "environment", "run_id", "actor")
_REST: Final = "*"
_DEEPEST: Final = 16  # nesting of a header and of claims
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Granted:
    """A token for an identity; `secret` is told once."""

    secret: str
    project: str
    scopes: tuple[str, ...]
    expires_at: datetime


def exchange(
    database: Database, issuers: Issuers, identity: str, project: str | None = None, *, ask: bool = True
) -> Granted:
    """A token for who signed as the trusts of a project say.

    Raises: IdentityRefused, Unavailable when the issuer's keys cannot be had, InvalidRequest when several projects
    trust the identity and none is named; NotKept where the issuer has to be asked first, unless `ask`.
    """
    issuer, kid, algorithm = _claimed(identity)
    with database.read() as session:
        known = trusts.of_issuer(session, issuer, project)
    if not known:
        _refuse("no trust in its issuer", project=project)
    try:
        key = issuers.key(issuer, kid, algorithm, ask=ask)
    except NotKept:
        raise NotKept(tuple(sorted({trust.project_id for trust, _ in known}))) from None
    if key is None:
        _refuse("no key of the issuer fits", issuer=issuer)
    try:
        claims = jwt.decode(
            identity,
            key.of(algorithm),
            algorithms=[algorithm],
            issuer=issuer,
            audience=sorted({trust.audience for trust, _ in known}),
            leeway=_LEEWAY_SECONDS,
            options={"require": list(_REQUIRED)},
        )
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
        _refuse(type(error).__name__, issuer=issuer)
    return _granted(database, claims, known)


def fits(trust: Trust, claims: Mapping[str, Any]) -> bool:
    """Whether claims that are proved are those of the trust."""
    audiences = claims.get("aud")
    if trust.audience not in (audiences if isinstance(audiences, list) else [audiences]):
        return False
    return bool(trust.claims) and all(
        name in claims and _is_one_of(wanted, claims[name]) for name, wanted in trust.claims.items()
    )


def _is_one_of(wanted: Any, found: Any) -> bool:
    """A claim that is a list has to hold what is wanted; of several wanted values one is enough."""
    choices = wanted if isinstance(wanted, list) else [wanted]
    values = found if isinstance(found, list) else [found]
    return any(_equal(choice, value) for choice in choices for value in values)


def _equal(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, str) and wanted.endswith(_REST) and isinstance(found, str):
        return found.startswith(wanted.removesuffix(_REST))
    return type(wanted) is type(found) and bool(wanted == found)


def _claimed(identity: str) -> tuple[str, str | None, str]:
    """Issuer, key id and algorithm as an identity says; nothing of it is proved. Raises: IdentityRefused."""
    if len(identity) > MOST_CHARACTERS:
        _refuse("it is too long")
    segments = identity.split(".")
    if len(segments) != 3:
        _refuse("it is no JWT")
    header, claims = map(_document, segments[:2])
    if not isinstance(header, dict) or not isinstance(claims, dict):
        _refuse("it is no JWT")
    issuer, kid, algorithm = claims.get("iss"), header.get("kid"), header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS or "crit" in header:
        _refuse("its algorithm is none of ours")
    if not isinstance(issuer, str) or not isinstance(kid, str | None):
        _refuse("it names no issuer")
    return issuer, kid, algorithm


def _document(segment: str) -> Json:
    """What a segment says. Raises: IdentityRefused, also for what could be read in two ways, or not be stored."""
    try:
        found, problems = parse(base64url_decode(segment), _DEEPEST)
    except (Malformed, ValueError):
        _refuse("it is no JWT")
    if problems:
        _refuse("it is no plain JSON", problem=problems[0].kind)
    return found


def _granted(database: Database, claims: Mapping[str, Any], known: Sequence[tuple[Trust, str]]) -> Granted:
    subject = clean(claims["sub"])
    fitting = [(trust, name) for trust, name in known if fits(trust, claims)]
    if not fitting:
        _refuse("no trust fits its claims", issuer=claims["iss"], subject=subject[:_SHOWN])
    if len({name for _, name in fitting}) > 1:
        fault = Fault("body", "$.project", "several projects trust this identity")
        raise InvalidRequest("Several projects trust this identity: name the one that is meant.", fault)
    # Of several the one that allows most, then the oldest.
    trust, name = max(fitting, key=lambda one: len(one[0].scopes.split()))
    expires = now() + LIFETIME
    noted = {claim: clean(claims[claim])[:200] for claim in _NOTED if claim in claims}
    with database.write() as session:
        if trusts.locked(session, trust.id) is None:
            _refuse("the trust was just removed", issuer=claims["iss"])
        made = auth.add_identity(session, trust, subject[:_SHOWN], expires)
        detail = {"trust": trust.id, "subject": subject[:200], **noted}
        audit.add(session, trust.project_id, made.actor, "identity.admitted", made.row.id, detail)
    return Granted(made.secret, name, tuple(trust.scopes.split()), expires)


def _refuse(why: str, **facts: Any) -> NoReturn:
    log.info("identity.refused", why=why, **facts)
    raise IdentityRefused()
