"""Reasons why the database could not answer."""

from ninfer_core.errors import NinferError


class RecordsError(NinferError):
    """Root of what this package raises on purpose."""

    code = "records"


class BadCursor(RecordsError):
    """A cursor that no list of this kind and order has handed out."""

    code = "bad_cursor"

    def __init__(self) -> None:
        super().__init__("the cursor is not one that this list has given; leave it out to begin at the start")


class UnsupportedDatabase(RecordsError):
    """An address of a database that is neither SQLite in a file nor PostgreSQL."""

    code = "database_unsupported"


class DatabaseUnreachable(RecordsError):
    """A database that cannot be opened; the message holds its address without the password."""

    code = "database_unreachable"

    def __init__(self, address: str, why: str) -> None:
        super().__init__(f"the database {address} cannot be used: {why}")
        self.address = address


class DatabaseNewer(RecordsError):
    """A database whose tables a later ninfer-gate made; `revision` is theirs."""

    code = "database_newer"

    def __init__(self, revision: str) -> None:
        super().__init__(
            f"the database is at revision {revision}, which this ninfer-gate does not know; "
            "use the version that made it, or a later one"
        )
        self.revision = revision


class DatabaseNotEmpty(RecordsError):
    """A database that a restore was to fill, and that has tables."""

    code = "database_not_empty"

    def __init__(self, address: str) -> None:
        super().__init__(f"the database {address} has tables already; a backup is restored into an empty one")
        self.address = address


class RevisionOther(RecordsError):
    """Tables of another version than this one's; `revision` is theirs, None where there are none."""

    code = "database_other_revision"

    def __init__(self, address: str, revision: str | None, needed: str) -> None:
        have = "has no tables" if revision is None else f"is at revision {revision}"
        super().__init__(
            f"the database {address} {have}, this version needs {needed}; run `ninfer-gate migrate`"
        )
        self.revision = revision


class ReferencesBroken(RecordsError):
    """Rows that refer to rows that are not there, found at the end of a migration on SQLite."""

    code = "database_references_broken"

    def __init__(self, tables: tuple[str, ...]) -> None:
        super().__init__(f"rows of {', '.join(tables)} refer to rows that are missing; nothing was changed")
        self.tables = tables


class ProfileChanged(RecordsError):
    """An encoder profile that means something else here than in the database, under the same name and version."""

    code = "encoder_profile_changed"

    def __init__(self, name: str, version: int, what: str) -> None:
        super().__init__(
            f"encoder profile {name} version {version} is recorded with another {what}: "
            "a changed meaning needs a new version, so nothing was changed"
        )
        self.name = name
        self.version = version


class JobOver(RecordsError):
    """A job that has come to its end, or that is not there: nothing more is stored of what came of it."""

    code = "job_over"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id} is over; nothing more is stored of it")


class NoOutcomes(RecordsError):
    """A shard that is not done, or whose outcomes were dropped when its job ended."""

    code = "shard_without_outcomes"

    def __init__(self, job_id: str, number: int) -> None:
        super().__init__(f"shard {number} of job {job_id} holds no outcomes")
