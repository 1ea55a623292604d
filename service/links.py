"""A link to a service that may break at any time: asked again, with growing pauses, as long as something gets on."""

import random
import re
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import httpx

from ninfer_core.errors import NinferError
from service.client import Client, refused

T = TypeVar("T")

PASSING: Final = frozenset((408, 423, 425, 429, 500, 502, 503, 504))
ANSWER_SECONDS: Final = 600.0  # an answer comes when all is on the disk
_CODE: Final = re.compile(r"[a-z0-9_]{1,60}", re.ASCII)
_SOONEST, _LATEST = 0.25, 15.0  # seconds between two attempts


class Stopped(Exception):
    """Whoever asked for it does not want it any more."""


class Unfinished(NinferError):
    """The service could not be reached, or did not take what was sent, for too long."""

    code = "unfinished"
    advice = "NINFER_GATE_URL or --url says where the service is, and its /readyz what it lacks."


class Passing(Exception):
    """An answer that may be another one soon."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer


class Link:
    """What one piece of work asks of a service; `what` it is about stands in messages."""

    def __init__(
        self,
        client: Client,
        what: str,
        patience_seconds: float,
        stop: threading.Event,
        told: Callable[[str], None],
    ) -> None:
        """`told` hears of every break, in words."""
        self._client, self._what, self._patience_seconds = client, what, patience_seconds
        self._stop, self._told = stop, told
        self._got_on_at, self._pause = time.monotonic(), _SOONEST

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Any answer that will stay as it is. Raises: Passing, Stopped, httpx.TransportError."""
        if self._stop.is_set():
            raise Stopped
        more.setdefault("timeout", httpx.Timeout(60.0, read=ANSWER_SECONDS))
        answer = self._client.http.request(method, path, **more)
        if answer.status_code in PASSING:
            raise Passing(answer)
        return answer

    def success(self, method: str, path: str, **more: Any) -> httpx.Response:
        """An answer that is no error. Raises: Refused; as `ask`."""
        return checked(self.ask(method, path, **more))

    def patiently(self, work: Callable[[], T]) -> T:
        """The answer of `work`, begun again while link or service are away. Raises: Unfinished, Stopped; what `work` does."""
        while True:
            try:
                return work()
            except httpx.TransportError as error:
                self._back_off(broken(error), None)
            except Passing as passing:
                answer = passing.answer
                self._back_off(_said(answer), answer.headers.get("Retry-After"))

    @property
    def idle_seconds(self) -> float:
        """For how long nothing got on."""
        return time.monotonic() - self._got_on_at

    def got_on(self) -> None:
        """Something was done that need not be done again."""
        self._got_on_at, self._pause = time.monotonic(), _SOONEST

    def wait(self, seconds: float) -> None:
        """Raises: Stopped."""
        if self._stop.wait(seconds):
            raise Stopped

    def _back_off(self, why: str, wait: str | None) -> None:
        idle = self.idle_seconds
        if idle > self._patience_seconds:
            raise Unfinished(
                f"nothing of {self._what} got on for {idle:.0f} s: {why}; the same command goes on where this stopped"
            )
        pause = self._pause * random.uniform(0.5, 1.5)  # noqa: S311  no secret
        if wait is not None and wait.isdigit():
            pause = max(pause, min(float(wait), _LATEST))
        self._told(f"{self._what}: {why}; again in {pause:.1f} s")
        self._pause = min(_LATEST, self._pause * 2)
        self.wait(pause)


def broken(error: httpx.TransportError) -> str:
    """What became of a link, in words that hold no address: one may open something."""
    if isinstance(error, httpx.ConnectError):
        return "nobody listens there" if "refused" in str(error) else f"no connection could be made ({error})"
    if isinstance(error, httpx.TimeoutException):
        return "nothing came for too long"
    return "the link broke"


def _said(answer: httpx.Response) -> str:
    code = code_of(answer)
    return f"the answer is {answer.status_code}" + (f" ({code})" if code else "")


def code_of(answer: httpx.Response) -> str | None:
    """The code of a problem of ours; None for what others answer."""
    code = refused(answer).problem.get("code")
    return code if isinstance(code, str) and code != "not_ours" and _CODE.fullmatch(code) else None


def checked(answer: httpx.Response) -> httpx.Response:
    """The answer. Raises: Refused for an error."""
    if answer.is_error:
        raise refused(answer)
    return answer
