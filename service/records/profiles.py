"""The registry of encoder profiles in the database: what a name and version meant when it was first seen here."""

from sqlalchemy.orm import Session

from ninfer_core.encoders import PROFILES
from ninfer_core.encoders import EncoderProfile as Profile
from ninfer_core.encoders.known_answers import known_answers
from ninfer_core.identity import canonical_digest
from service.records.errors import ProfileChanged
from service.records.models import EncoderProfile
from service.records.types import now


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


def ensure(session: Session) -> None:
    """Record each profile of this version. Raises: ProfileChanged, when one is recorded with another meaning."""
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
                    first_seen_at=now(),
                )
            )
        elif known.specification_digest != specification:
            raise ProfileChanged(profile.name, profile.version, "specification")
        elif known.vectors_digest != vectors:
            raise ProfileChanged(profile.name, profile.version, "set of known answers")
