"""`ninfer-gate push` against a real service: what is held, what broke off, links that break, and what a person is told."""

import hashlib
import json
import os
import random
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from service import links, pushing
from service.cli import app
from service.client import Client
from service.links import Unfinished
from service.pushing import Changed, How, NotStored, push
from tests.service.api.tussing import create, incoming, patch
from tests.service.api.world import World, world

MIB = 1 << 20


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("push")
    shutil.copyfile(sqlite_template, folder / "records.sqlite")
    with world(folder / "data", f"sqlite:///{folder / 'records.sqlite'}", idle_seconds=10.0) as made:
        yield made


@pytest.fixture
def client(api: World) -> Iterator[Client]:
    with Client(api.address, api.token) as made:
        yield made


def file(folder: Path, size: int, seed: int, name: str = "weights.ninfer") -> Path:
    path = folder / name
    path.write_bytes(random.Random(seed).randbytes(size))
    return path


def digest(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def held(api: World, path: Path) -> bool:
    """Whether the service hands the very bytes out."""
    return api.call("GET", f"/v1/blobs/{digest(path)}").content == path.read_bytes()


class Link:
    """A link between client and service that breaks whenever so many bytes have passed, `cuts` times."""

    def __init__(self, address: str, cut_bytes: int, cuts: int) -> None:
        host, port = address.removeprefix("http://").split(":")
        self._service = (host, int(port))
        self._cut_bytes, self.cuts = cut_bytes, cuts
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """No more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._service)
            for source, target, counted in ((near, far, True), (far, near, False)):
                threading.Thread(target=self._carry, args=(source, target, counted), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        passed = 0
        try:
            while piece := source.recv(65_536):
                passed += len(piece)
                if counted and passed > self._cut_bytes and self._cut():
                    break
                target.sendall(piece)
        except OSError:
            pass
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _cut(self) -> bool:
        with self._lock:
            self.cuts -= 1
            return self.cuts >= 0


@contextmanager
def link(api: World, cut_bytes: int, cuts: int) -> Iterator[tuple[Client, Link]]:
    made = Link(api.address, cut_bytes, cuts)
    try:
        with Client(made.address, api.token) as client:
            yield client, made
    finally:
        made.close()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long between attempts."""
    monkeypatch.setattr(links, "_SOONEST", 0.01)
    monkeypatch.setattr(pushing, "_POLL_SECONDS", 0.02)


def test_what_is_held_is_not_sent(api: World, client: Client, tmp_path: Path) -> None:
    path = file(tmp_path, 3 * MIB, 1)
    shown: list[int] = []
    first = push(client, path, How(progress=shown.append))
    assert (first.how, first.sent_bytes, sum(shown)) == ("tus", 3 * MIB, 3 * MIB)
    assert first.digest == digest(path)
    assert held(api, path)
    again = push(client, path, How(progress=shown.append))
    assert (again.how, again.sent_bytes, sum(shown)) == ("held", 0, 6 * MIB)
    empty = file(tmp_path, 0, 0, "empty")
    assert push(client, empty, How()).how in ("tus", "held")


def test_what_broke_off_goes_on_wherever_the_client_is(api: World, client: Client, tmp_path: Path) -> None:
    path = file(tmp_path, 4 * MIB, 2)
    content = path.read_bytes()
    place = create(api, len(content), sha256=hashlib.sha256(content).hexdigest())  # by a client that died
    patch(api, place, 0, content[: 3 * MIB])
    pushed = push(client, path, How())
    assert pushed.sent_bytes == MIB
    assert api.call("GET", place).json()["state"] == "stored"


def test_links_that_break(api: World, tmp_path: Path) -> None:
    path = file(tmp_path, 6 * MIB, 3)
    with link(api, MIB, cuts=4) as (client, broken):
        pushed = push(client, path, How())
    assert broken.cuts <= 0
    assert held(api, path)
    assert pushed.sent_bytes >= 6 * MIB


def test_nothing_gets_on(api: World, tmp_path: Path) -> None:
    path = file(tmp_path, 6 * MIB, 4)
    with (
        link(api, 1_000, cuts=10**9) as (client, _),
        pytest.raises(Unfinished, match="goes on where this stopped"),
    ):
        push(client, path, How(patience_seconds=0.3))
    with Client("http://127.0.0.1:9", api.token) as nobody, pytest.raises(Unfinished):
        push(nobody, path, How(patience_seconds=0.1))


def test_an_upload_that_is_gone_is_begun_again(api: World, client: Client, tmp_path: Path) -> None:
    path = file(tmp_path, 2 * MIB, 5)
    content = path.read_bytes()
    place = create(api, len(content), sha256=hashlib.sha256(content).hexdigest())
    (api.parts.blobs.scratch / "incoming" / Path(place).name).unlink()  # it lay on a machine that is no more
    assert push(client, path, How()).sent_bytes == 2 * MIB
    assert Path(place).name not in {one.name for one in incoming(api)}


class Balancer(httpx.HTTPTransport):
    """Sends requests to services by turns, or all of them to the last."""

    def __init__(self, *services: World, turns: bool = True) -> None:
        super().__init__()
        self._services, self._turns, self._count = services, turns, 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """See httpx."""
        self._count += 1
        chosen = self._services[self._count % len(self._services) if self._turns else -1]
        request.url = request.url.copy_with(port=httpx.URL(chosen.address).port)
        return super().handle_request(request)


@pytest.mark.parametrize("turns", [True, False])
def test_the_file_of_an_upload_is_on_another_machine(tmp_path: Path, sqlite_url: str, turns: bool) -> None:
    path, told = file(tmp_path, MIB, 8), list[str]()
    content = path.read_bytes()
    with world(tmp_path / "one", sqlite_url) as one, world(tmp_path / "other", sqlite_url) as other:
        one.http.headers["Authorization"] = other.http.headers["Authorization"]
        place = create(one, len(content), sha256=hashlib.sha256(content).hexdigest())
        patch(one, place, 0, content[: MIB // 2])
        with Client(one.address, other.token) as client:
            client.http = httpx.Client(
                base_url=one.address, headers=client.http.headers, transport=Balancer(one, other, turns=turns)
            )
            pushed = push(client, path, How(told=told.append, patience_seconds=30.0 if turns else 0.5))
            client.http.close()
        assert turns or any("the machine that has its upload is not met" in said for said in told)
        # Where that machine is met, it goes on there; where it is not, it begins anew, and nothing is taken from there.
        assert pushed.how == "tus"
        assert one.call("GET", place).json()["state"] == ("stored" if turns else "receiving")
        assert held(other if not turns else one, path)


def test_a_file_that_is_written_meanwhile(api: World, client: Client, tmp_path: Path) -> None:
    path = file(tmp_path, 4 * MIB, 6)

    def change(_: int) -> None:
        os.utime(path, ns=(1, 1))

    with pytest.raises(Changed, match="was changed while it was sent"):
        push(client, path, How(progress=change))
    assert not api.call("HEAD", f"/v1/blobs/{digest(path)}").is_success


def test_what_is_there_and_wrong_is_said(
    api: World, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file(tmp_path, MIB, 7)
    real = api.parts.storing.hashes.take
    monkeypatch.setattr(
        api.parts.storing.hashes, "take", lambda *_: None
    )  # hashed afterwards, beside the request
    monkeypatch.setattr(pushing, "_digest", lambda *_: f"sha256:{'1' * 64}")
    with pytest.raises(NotStored, match="sha256"):
        push(client, path, How())
    monkeypatch.setattr(api.parts.storing.hashes, "take", real)


def test_a_service_that_cannot_store_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All bytes are there, but the bucket is gone: the patience counts, for as long as the service says so."""
    path, able, told = file(tmp_path, 10, 8), [200, 200], list[str]()
    seen = {
        "id": "1" * 32,
        "protocol": "tus",
        "bytes": 10,
        "offset": 10,
        "state": "storing",
        "elsewhere": False,
    }

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/readyz":
            return httpx.Response(able.pop() if able else 503, json={"code": "not_ready"})
        if request.url.path.startswith("/v1/blobs/"):
            return httpx.Response(404)
        many = request.url.path == "/v1/uploads"
        return httpx.Response(200, headers={"Upload-Offset": "10"}, json={"items": [seen]} if many else seen)

    monkeypatch.setattr(pushing, "_ASK_SECONDS", 0.01)
    monkeypatch.setattr(pushing, "_LARGE_BYTES", 10)
    with Client("http://gate.example", "x") as client:
        client.http = httpx.Client(base_url=client.address, transport=httpx.MockTransport(answer))
        with pytest.raises(Unfinished, match=r"503 \(not_ready\); the same command goes on"):
            push(client, path, How(patience_seconds=0.1, told=told.append))
    assert able == []
    assert told[0].startswith("weights.ninfer: 10 B are hashed first")
    assert sum("the service stores it" in line for line in told) == 1


def test_the_command(
    api: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NINFER_GATE_URL", f"{api.address}/")
    monkeypatch.setenv("NINFER_GATE_TOKEN", f"{api.token}\n")  # as a file has it
    folder = tmp_path / "model"
    folder.mkdir()
    for number, name in enumerate(("a.part-0000.ninfer", "b", "c")):
        file(folder, 100_000 + number, 10 + number, name)
    assert app.run(["push", str(folder), "--kind", "ninfer", "--parallel", "2"]) == 0
    said = capsys.readouterr()
    assert said.err == ""  # no bar where nobody watches
    assert "3 files, 300 kB" in said.out
    assert "artifact    sha256:" in said.out
    report = tmp_path / "push.json"
    assert app.run(["push", str(folder), "--checkpoint", "--json", str(report)]) == 0
    document = json.loads(report.read_text())
    assert [item["how"] for item in document["files"]] == ["held"] * 3
    assert api.call("GET", f"/v1/checkpoints/{document['checkpoint']}").is_success
    capsys.readouterr()
    assert app.run(["push", str(folder / "b"), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["name"] == "b"


CANARY = "tok_CANARY_7f3a"


@pytest.mark.parametrize(
    ("address", "token", "more", "said"),
    [
        (None, "", [], "NINFER_GATE_TOKEN"),
        (None, f"{CANARY} x", [], "holds characters that no token has"),
        (None, f"{CANARY}\nx", [], "holds characters that no token has"),
        (None, CANARY, [], "it may have ended"),
        (f"http://user:{CANARY}@127.0.0.1:9", CANARY, [], "holds a user or a password"),
        ("ftp://127.0.0.1", CANARY, [], "begins with http://"),
        ("http://127.0.0.1:9", CANARY, ["--patience", "0"], "nobody listens there; the same command goes on"),
        (None, CANARY, ["--verify"], "--kind"),
        (None, CANARY, ["--kind", "ninfer", "--checkpoint"], "give one of them"),
        (None, CANARY, ["--repository", "x"], "claims of a checkpoint"),
    ],
)
def test_what_the_command_refuses(
    api: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    address: str | None,
    token: str,
    more: list[str],
    said: str,
) -> None:
    """In words, with the code 2, and without the secret (B40)."""
    monkeypatch.setenv("NINFER_GATE_URL", address or api.address)
    monkeypatch.setenv("NINFER_GATE_TOKEN", token)
    path = file(tmp_path, 10, 20)
    assert app.run(["push", str(path), *more]) == 2
    found = capsys.readouterr()
    assert said in found.err
    assert "CANARY" not in found.err + found.out


def test_names_that_are_given_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: World) -> None:
    monkeypatch.setenv("NINFER_GATE_TOKEN", api.token)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        file(tmp_path / name, 10, 1)
    assert app.run(["push", str(tmp_path / "one"), str(tmp_path / "two"), "--kind", "ninfer"]) == 2
    assert app.run(["push", str(tmp_path / "nothing")]) == 2
