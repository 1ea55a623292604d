"""`python -m migrations "purpose of the change"` writes the next migration: what the models have and the tables have not."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from alembic import command

from service.records.connections import engine, writers
from service.records.database import migrate
from service.records.schema import configuration


def main() -> int:
    """Compare the models with a fresh database that has every migration; the exit code."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    purpose = sys.argv[1]
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'fresh.sqlite'}"
        migrate(url)
        fresh = engine(url)
        with writers(fresh).begin() as connection:
            name = f"{datetime.now(UTC):%Y_%m_%d}_{purpose.lower().replace(' ', '_')}"[:32]
            command.revision(configuration(connection), purpose, autogenerate=True, rev_id=name)
        fresh.dispose()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
