"""A real service: the installed command with its worker, on a free port, with a folder of its own."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.client import Client
from tests.cli.build import COMMAND
from tests.warm import warm


@dataclass(frozen=True)
class Service:
    """A running service."""

    process: "subprocess.Popen[str]"
    address: str
    token: str
    log: Path

    def client(self) -> Client:
        """A client with the token."""
        return Client(self.address, self.token)


@contextmanager
def serving(
    data: Path, *options: object, environment: Mapping[str, str] | None = None, token: str | None = None
) -> Iterator[Service]:
    """Start, hand out, stop by SIGTERM; `token` when the folder has been served before. Fails unless it ends with 0."""
    if "--no-worker" not in options:
        warm()
    log = data.with_name(f"{data.name}.log")
    with log.open("a") as errors:
        process = subprocess.Popen(
            [str(COMMAND), "serve", "--data", str(data), "--port", "0", *map(str, options)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **(environment or {})},
        )
    try:
        text = ""
        while process.stdout is not None and " token " not in text and (line := process.stdout.readline()):
            text += line
        address, printed = re.search(r"http://\S+", text), re.search(r"token +(\S{20,})", text)
        if address is None or (printed is None and token is None):
            raise AssertionError(f"no service: {text}\n{log.read_text()}")
        yield Service(process, address[0], printed[1] if printed else token or "", log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
