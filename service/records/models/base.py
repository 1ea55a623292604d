"""What every table shares: names of constraints, types of columns, and whose a row is."""

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    Float,
    ForeignKey,
    MetaData,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from service.records.types import HostileString, HostileText, Utc

NAMING: dict[str, str] = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
DEFAULT_PROJECT = "default"
# `Artifact.listing`: what became of reading its directory.
PENDING, LISTED, UNREADABLE = "pending", "listed", "unreadable"
ID = HostileString(32)
DIGEST = HostileString(71)
SHA256 = HostileString(64)


class Base(DeclarativeBase):
    """The metadata with every constraint named."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: HostileText,
        int: BigInteger,
        float: Float(53),
        bool: Boolean,
        datetime: Utc,
    }


class OfProject:
    """A table of a tenant's data."""

    project_id: Mapped[str] = mapped_column(ID, ForeignKey("projects.id"))
