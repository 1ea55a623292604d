"""A command on a real terminal of a given width: what a person would see."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable

from tests.cli.build import COMMAND

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LIMIT_SECONDS = 30.0


class Terminal:
    """Standard output and error of one run of the command, on one pseudo-terminal."""

    def __init__(self, *arguments: object, columns: int = 80, no_color: bool = False) -> None:
        self._leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        environment |= {"TERM": "xterm-256color"} | ({"NO_COLOR": "1"} if no_color else {})
        self._process = subprocess.Popen(
            [str(COMMAND), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=follower,
            stderr=follower,
            env=environment,
            start_new_session=True,
        )
        os.close(follower)
        os.set_blocking(self._leader, False)
        self.raw = ""

    @property
    def text(self) -> str:
        """What was shown so far, without colours."""
        return _ESCAPE.sub("", self.raw).replace("\r\n", "\n")

    @property
    def lines(self) -> list[str]:
        """The lines shown so far."""
        return [line.rstrip() for line in self.text.splitlines()]

    def read_until(self, enough: Callable[[str], bool]) -> None:
        """Read until `enough` holds of the text or the command has ended."""
        end = time.monotonic() + _LIMIT_SECONDS
        while time.monotonic() < end and not enough(self.text):
            try:
                self.raw += os.read(self._leader, 1 << 16).decode("utf-8", "replace")
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:  # the other side is closed
                return

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def hang_up(self) -> int:
        """Close the window; the exit code."""
        os.close(self._leader)
        self._process.send_signal(signal.SIGHUP)
        try:
            return self._process.wait(10)
        finally:
            self._process.kill()
            self._process.wait()

    def finish(self) -> int:
        """The exit code, after everything was read."""
        self.read_until(lambda _: False)
        try:
            return self._process.wait(1)
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._leader)
