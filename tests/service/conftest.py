"""The databases of `tests/databases.py` for every test of the service."""

from tests.databases import (
    database,
    database_url,
    empty_url,
    postgres_server,
    postgresql_url,
    sqlite_template,
    sqlite_url,
)

__all__ = [
    "database",
    "database_url",
    "empty_url",
    "postgres_server",
    "postgresql_url",
    "sqlite_template",
    "sqlite_url",
]
