"""Where our own requests may go: nowhere inside, and only where we looked."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from service import outbound
from service.outbound import Outbound, OutboundFailed, OutboundRefused
from service.settings import Settings

ALL = 1 << 20
OURS = ("127.0.0.0/8",)


def way_out(*networks: str) -> Outbound:
    """The way out where these networks are allowed."""
    return Outbound(Settings(outbound_private=networks))


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",  # noqa: S104  nobody listens there
        "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254",
        "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1",
        "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
        "::", "::1", "fe80::1", "fe80::1%1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "100::1",
        "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:4136:e378:8000:63bf:f5ff:fffe", "::127.0.0.1",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str) -> None:
    assert not outbound.is_public(ip_address(address))


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "140.82.112.3", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1"]
)
def test_addresses_that_are(address: str) -> None:
    assert outbound.is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:1/", "https://127.0.0.1:1/", "https://localhost:1/", "https://[::1]:1/", "https://0/",
        "https://2130706433/", "https://0x7f.1/", "https://127.1/", "https://[::ffff:127.0.0.1]/", "https://169.254.169.254/",
        "file:///etc/passwd", "ftp://1.1.1.1/", "gopher://1.1.1.1/", "//1.1.1.1/", "https:///x", "x", "",
        "https://user:secret@1.1.1.1/", "http://1.1.1.1/", "https://" + "x" * 3_000, "https://[::1%25lo]/", "https://1.1.1.1:99999/",
    ],
)  # fmt: skip
def test_refused_before_anything_is_sent(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any, **__: Any) -> Any:
        raise AssertionError("a connection was made")

    monkeypatch.setattr(outbound, "_answered", nothing)
    with pytest.raises((OutboundRefused, OutboundFailed)) as caught:
        way_out().document(address, ALL)
    assert "secret" not in str(caught.value)


def names(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Names have these addresses, another list each time they are asked for; which names were."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        found = answers[min(len(asked), len(answers) - 1)]
        asked.append(host)
        return [
            (socket.AF_INET6 if ":" in one else socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port))
            for one in found
        ]

    monkeypatch.setattr(outbound.socket, "getaddrinfo", getaddrinfo)
    return asked


def test_one_private_address_among_others_refuses_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, ["1.1.1.1", "10.0.0.1"])
    with pytest.raises(OutboundRefused):
        way_out().document("https://both.example/", ALL)


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port of this machine that answers so."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5)

        def serve() -> None:
            with listener.accept()[0] as connection:
                connection.settimeout(5)
                answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(5)


def test_a_name_that_changes_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: the connection goes where we looked, under the name that was asked for."""
    heard: list[bytes] = []

    def answer(connection: socket.socket) -> None:
        heard.append(connection.recv(4_096))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    asked = names(monkeypatch, ["127.0.0.1"], ["127.0.0.2"])
    with answering(answer) as port:
        assert way_out("127.0.0.1/32").document(f"http://name.example:{port}/a?b=c", ALL) == {}
    assert asked == ["name.example"]
    assert heard[0].startswith(b"GET /a?b=c HTTP/1.1\r\n")
    assert f"host: name.example:{port}\r\n".encode() in heard[0].lower()


def refusing(body: bytes, status: bytes = b"200 OK", more: bytes = b"") -> Callable[[socket.socket], None]:
    """Answers so, without an end that is announced."""

    def answer(connection: socket.socket) -> None:
        connection.recv(4_096)
        try:
            connection.sendall(b"HTTP/1.1 " + status + b"\r\n" + more + b"Connection: close\r\n\r\n" + body)
        except OSError:
            return

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        refusing(b"{}", b"302 Found", b"Location: http://127.0.0.1:1/\r\n"),
        refusing(b"{}", b"404 Not Found"),
        refusing(b"x" * 200_000),
        refusing(b'{"a": '),
        refusing(b"[" * 90_000),
        refusing(b"\xff\xfe"),
        lambda connection: None,
    ],
    ids=["redirect", "404", "large", "cut", "deep", "no text", "nothing"],
)
def test_answers_that_are_no_use(answer: Callable[[socket.socket], None]) -> None:
    with answering(answer) as port, pytest.raises(OutboundFailed):
        way_out(*OURS).document(f"http://127.0.0.1:{port}/", 100_000)


def test_an_answer_that_drips_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, all of them never: the whole request has an end."""
    monkeypatch.setattr(outbound, "_SECONDS", 0.4)

    def answer(connection: socket.socket) -> None:
        connection.recv(4_096)
        for _ in range(60):
            try:
                connection.sendall(b"H")
            except OSError:
                return
            time.sleep(0.02)

    begin = time.monotonic()
    with answering(answer) as port, pytest.raises(OutboundFailed):
        way_out(*OURS).document(f"http://127.0.0.1:{port}/", ALL)
    assert time.monotonic() - begin < 3


@pytest.mark.parametrize("name", ["right.example", "wrong.example"])
def test_the_certificate_is_that_of_the_name(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The name goes into the handshake and is held against the certificate, though an address is connected to."""
    certificate = made_certificate(tmp_path, "right.example")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate)
    said: list[str | None] = []
    server.sni_callback = lambda _socket, host, _context: said.append(host)

    def answer(connection: socket.socket) -> None:
        try:
            with server.wrap_socket(connection, server_side=True) as inside:
                inside.recv(4_096)
                inside.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        except OSError:
            return

    names(monkeypatch, ["127.0.0.1"])
    out = way_out(*OURS)
    monkeypatch.setattr(out, "_trusted", lambda: ssl.create_default_context(cafile=str(certificate)))
    with answering(answer) as port:
        if name == "right.example":
            assert out.document(f"https://{name}:{port}/", ALL) == {}
        else:
            with pytest.raises(OutboundFailed):
                out.document(f"https://{name}:{port}/", ALL)
    assert said == [name]


def made_certificate(folder: Path, name: str) -> Path:
    """A certificate that signs itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    path = folder / "certificate.pem"
    path.write_bytes(text + made.public_bytes(serialization.Encoding.PEM))
    return path
