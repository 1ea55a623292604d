"""The databases of `tests/databases.py`, and the server of `tests/s3.py`, for every test of the service."""

from tests.databases import (
    database,
    database_url,
    empty_url,
    postgres_server,
    postgresql_url,
    sqlite_template,
    sqlite_url,
)
from tests.s3 import s3, s3_server, s3_settings

__all__ = [
    "database",
    "database_url",
    "empty_url",
    "postgres_server",
    "postgresql_url",
    "s3",
    "s3_server",
    "s3_settings",
    "sqlite_template",
    "sqlite_url",
]
