"""The registry of encoder profiles in the database: what a name and version meant when it was first seen here."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final

from sqlalchemy.orm import Session

from ninfer_core.encoders import PROFILES
from ninfer_core.encoders import EncoderProfile as Profile
from ninfer_core.encoders.known_answers import known_answers
from ninfer_core.identity import DIGEST_PREFIX, canonical_digest
from ninfer_core.locked import locked_digest
from service.records.errors import ProfileChanged
from service.records.models import EncoderProfile
from service.records.types import now

_SOURCES: Final = ("ninfer_core.encoders", "ninfer_core.kernels")


def specification_digest(profile: Profile) -> str:
    """Digest of what the profile says of itself."""
    return canonical_digest(
        {
            "name": profile.name,
            "version": profile.version,
            "formats": [fmt.name for fmt in profile.formats],
            "specification": profile.specification,
        }
    )


def vectors_digest(profile: Profile) -> str:
    """Digest of what its oracle answers to a fixed set of inputs."""
    return canonical_digest(known_answers(profile))


def semantic_digest(profile: Profile) -> str | None:
    """The digest of its meaning in the registry lock."""
    return locked_digest(PROFILES.what, profile.name)


@cache
def implementation_digest() -> str:
    """Digest of the source text that encoders are made of, oracles and kernels alike."""
    digest = hashlib.sha256()
    for package in _SOURCES:
        for path in sorted(files(package).iterdir(), key=lambda entry: entry.name):
            if path.name.endswith(".py"):
                digest.update(f"{package}/{path.name}\0".encode() + path.read_bytes() + b"\0")
    return DIGEST_PREFIX + digest.hexdigest()


def ensure(session: Session) -> None:
    """Record each profile of this version. Raises: ProfileChanged, when one is recorded with another meaning.

    An implementation may change under the same meaning: the latest one is kept.
    """
    implementation = implementation_digest()
    for profile in PROFILES:
        specification, vectors = specification_digest(profile), vectors_digest(profile)
        known = session.get(EncoderProfile, (profile.name, profile.version))
        if known is None:
            session.add(
                EncoderProfile(
                    name=profile.name,
                    version=profile.version,
                    specification=profile.specification,
                    specification_digest=specification,
                    vectors_digest=vectors,
                    semantic_digest=semantic_digest(profile),
                    implementation_digest=implementation,
                    first_seen_at=now(),
                )
            )
        elif known.specification_digest != specification:
            raise ProfileChanged(profile.name, profile.version, "specification")
        elif known.vectors_digest != vectors:
            raise ProfileChanged(profile.name, profile.version, "set of known answers")
        else:
            known.semantic_digest = semantic_digest(profile)
            known.implementation_digest = implementation
