"""Whose signed identities open a project: kept by its administrators, asked by `service.oidc`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import httpx

from service.auth import Caller
from service.errors import Fault, InvalidRequest, TrustNotFound
from service.parts import Parts
from service.records import audit, tokens, trusts
from service.records.models import Trust
from service.records.pages import Page
from service.records.types import new_id, now
from service.scopes import spelled, widened

GITHUB: Final = "https://token.actions.githubusercontent.com"
_OWN: Final = frozenset(("iss", "aud", "exp", "nbf", "iat", "jti"))  # judged apart from what a trust wants
_MOST: Final = 200  # of a project: whoever shows an identity has those of its issuer looked at
_REST_AFTER: Final = "@/:"
_NAME: Final = re.compile(r"[\x21-\x7e]{1,100}")


def create(
    parts: Parts,
    caller: Caller,
    *,
    name: str,
    issuer: str,
    audience: str,
    claims: Mapping[str, Any],
    scopes: Sequence[str],
) -> Trust:
    """Trust an issuer's identities with these claims. Raises: InvalidRequest with every fault."""
    faults = [*_issuer_faults(issuer), *_claim_faults(claims)]
    if faults:
        raise InvalidRequest("This cannot be trusted.", *faults)
    row = Trust(
        id=new_id(),
        project_id=caller.project_id,
        name=name,
        issuer=issuer,
        audience=audience,
        claims=dict(claims),
        scopes=spelled(widened(scopes)),
        created_by=caller.actor,
        created_at=now(),
    )
    detail = {
        "name": name,
        "issuer": issuer,
        "audience": audience,
        "claims": row.claims,
        "scopes": row.scopes,
    }
    with parts.database.write() as session:
        if trusts.count(session, caller.project_id) >= _MOST:
            raise InvalidRequest(f"A project has at most {_MOST} trusts: remove one that is not needed.")
        trusts.add(session, row)
        audit.add(session, caller.project_id, caller.actor, "trust.created", row.id, detail)
    return row


def page(parts: Parts, caller: Caller, *, limit: int, cursor: str | None = None) -> Page[Trust]:
    """Trusts of the caller's project, newest first. Raises: BadCursor."""
    with parts.database.read() as session:
        return trusts.page(session, caller.project_id, limit=limit, cursor=cursor)


def remove(parts: Parts, caller: Caller, id_: str) -> None:
    """Trust it no longer; tokens that came by it open nothing any more. Raises: TrustNotFound."""
    with parts.database.write() as session:
        gone = trusts.remove(session, caller.project_id, id_)
        if gone is None:
            raise TrustNotFound("This project has no such trust.")
        tokens.remove_with_children(session, caller.project_id, id_)
        detail = {"name": gone.name, "issuer": gone.issuer}
        audit.add(session, caller.project_id, caller.actor, "trust.removed", id_, detail)


def _issuer_faults(issuer: str) -> list[Fault]:
    try:
        url = httpx.URL(issuer)
        plain = (
            url.scheme in ("https", "http")
            and bool(url.host)
            and not (url.userinfo or url.query or url.fragment)
        )
    except (httpx.InvalidURL, ValueError):
        plain = False
    if plain:
        return []
    return [Fault("body", "$.issuer", "an issuer is an https address without user, query and fragment")]


def _claim_faults(claims: Mapping[str, Any]) -> list[Fault]:
    faults = [
        Fault("body", f"$.claims.{name}", "issuer, audience and times are judged by themselves")
        for name in sorted(_OWN & set(claims))
    ]
    for name, wanted in claims.items():
        if not _NAME.fullmatch(name):
            faults.append(Fault("body", "$.claims", "names of claims are 1 to 100 visible ASCII characters"))
        for value in wanted if isinstance(wanted, list) else [wanted]:
            if isinstance(value, str) and "*" in value and not _ends_in_rest(value):
                told = "`*` stands for any rest, at the end alone, after @, / or :"
                faults.append(Fault("body", f"$.claims.{name}", told))
    return faults


def _ends_in_rest(value: str) -> bool:
    """Whether the one star is where it cannot reach into a name: `refs/tags/*`, not `refs/heads/main*`."""
    return value.count("*") == 1 and value.endswith("*") and len(value) > 2 and value[-2] in _REST_AFTER
