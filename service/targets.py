"""Targets: contracts of what an artifact holds. The registered ones are served beside those that a project stored."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import rfc8785
from sqlalchemy.orm import Session

from ninfer_core.findings import Findings
from ninfer_core.targets import TARGETS, parse_target
from ninfer_core.targets import Target as Contract
from service.errors import Internal, TargetFaulty, TargetNotFound
from service.faulty import faulty
from service.parts import Parts
from service.records import targets
from service.records.errors import BadCursor
from service.records.models import Target
from service.records.pages import Page, decode, encode, ordinal
from service.records.types import now

_REGISTERED: Final = "targets.registered"


@dataclass(frozen=True, slots=True)
class Listed:
    """A target as lists and pages name it; `created_at` is None for a registered one."""

    digest: str
    model_id: str
    weights_id: str
    key: str | None
    inventory_sha256: str
    objects: int
    registered: bool
    created_at: datetime | None

    @property
    def identity(self) -> str:
        """`model_id/weights_id`."""
        return f"{self.model_id}/{self.weights_id}"


def push(parts: Parts, project_id: str, text: bytes) -> tuple[Listed, bool]:
    """The target in a text, and whether it is new. Raises: TargetFaulty with every finding."""
    findings = Findings()
    contract = parse_target(text, findings)
    if contract is None:
        raise faulty(TargetFaulty, "target", findings)
    if (known := _registered(contract.digest)) is not None:
        return _of_contract(known), False
    row = Target(
        project_id=project_id,
        digest=contract.digest,
        model_id=contract.model_id,
        weights_id=contract.weights_id,
        key=contract.key,
        inventory_sha256=contract.inventory_sha256,
        object_count=len(contract.objects),
        document=rfc8785.dumps(dict(contract.document)).decode(),
        created_at=now(),
    )
    with parts.database.write() as session:
        new = targets.add_target(session, row)
        return _of_row(targets.target(session, project_id, contract.digest) or row), new


def find(parts: Parts, project_id: str, digest: str) -> Listed:
    """Raises: TargetNotFound."""
    with parts.database.read() as session:
        found = listed(session, project_id, digest)
    if found is None:
        raise not_found(digest)
    return found


def listed(session: Session, project_id: str, digest: str) -> Listed | None:
    """The target with a digest, registered or stored."""
    known = _registered(digest)
    if known is not None:
        return _of_contract(known)
    row = targets.target(session, project_id, digest)
    return None if row is None else _of_row(row)


def names(session: Session, project_id: str, digests: Collection[str]) -> dict[str, str]:
    """`model_id/weights_id` of targets by digest, registered and stored."""
    known = {target.digest: target.identity for target in TARGETS if target.digest in digests}
    return known | targets.identities(session, project_id, set(digests) - set(known))


def contract(session: Session, project_id: str, digest: str) -> Contract | None:
    """What a target says, registered or stored. Raises: Internal for a stored one that can no longer be read."""
    known = _registered(digest)
    if known is not None:
        return known
    row = targets.target(session, project_id, digest)
    if row is None:
        return None
    found = parse_target(row.document.encode(), Findings())
    if found is None:
        raise Internal(f"The stored target {digest} can no longer be read.")
    return found


def document(parts: Parts, project_id: str, digest: str) -> bytes:
    """The document in its RFC 8785 form, which has just this digest. Raises: TargetNotFound."""
    known = _registered(digest)
    if known is not None:
        return rfc8785.dumps(dict(known.document))
    with parts.database.read() as session:
        row = targets.target(session, project_id, digest)
    if row is None:
        raise not_found(digest)
    return row.document.encode()


def page(parts: Parts, project_id: str, *, limit: int, cursor: str | None) -> Page[Listed]:
    """The registered ones, then those that the project stored, newest first. Raises: BadCursor."""
    begin = _place(cursor)
    if begin is None:
        with parts.database.read() as session:
            stored = targets.targets(session, project_id, limit=limit, cursor=cursor)
        return Page([_of_row(row) for row in stored.items], stored.next)
    known = [_of_contract(target) for target in TARGETS[begin : begin + limit]]
    end = begin + len(known)
    if end < len(TARGETS):
        return Page(known, encode(_REGISTERED, end))
    with parts.database.read() as session:
        stored = targets.targets(session, project_id, limit=max(1, limit - len(known)))
    if len(known) == limit:
        return Page(known, encode(_REGISTERED, end) if stored.items else None)
    return Page([*known, *map(_of_row, stored.items)], stored.next)


def _place(cursor: str | None) -> int | None:
    """Where among the registered ones to go on; None behind them."""
    try:
        found: tuple[Any, ...] | None = decode(cursor, _REGISTERED, ordinal)
    except BadCursor:
        return None
    return 0 if found is None else int(found[0])


def _registered(digest: str) -> Contract | None:
    return next((target for target in TARGETS if target.digest == digest), None)


def _of_contract(target: Contract) -> Listed:
    return Listed(
        target.digest,
        target.model_id,
        target.weights_id,
        target.key,
        target.inventory_sha256,
        len(target.objects),
        True,
        None,
    )


def _of_row(row: Target) -> Listed:
    return Listed(
        row.digest,
        row.model_id,
        row.weights_id,
        row.key,
        row.inventory_sha256,
        row.object_count,
        False,
        row.created_at,
    )


def not_found(digest: str) -> TargetNotFound:
    """The refusal of a digest that is no target's."""
    return TargetNotFound(f"There is no target {digest}, neither registered nor in this project.")
