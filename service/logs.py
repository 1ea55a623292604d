"""Logs of the service and its workers: lines for a person, or JSON for a machine, and no secret in any of them.

What a piece of work is about (a request's id, a job, a shard) is bound once, with `about`; every line below it has it.
"""

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import structlog

from service.text import clean

_REQUEST: Final = "request"
# Nothing of ours logs these; what a library puts into an error is not ours. Tokens, signed identities, passwords in addresses.
_SECRETS: Final = re.compile(
    r"""ng_[A-Za-z0-9_-]{16,}
    | \beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?
    | (?<=[Bb]earer\ )[^\s'",;\\]+
    | (?<=://)[^\s/@'"]*:[^\s/@'"]*(?=@)
    | (?<=X-Amz-Signature=)[0-9A-Za-z%]+
    | (?<=X-Amz-Credential=)[^&\s'"]+
    """,
    re.VERBOSE,
)
HIDDEN: Final = "[hidden]"


def configure(as_json: bool, **always: str) -> None:
    """Send our events and those of the libraries to standard error, in one shape, each with the facts in `always`."""

    def told_of_this_process(_logger: Any, _method: str, event: structlog.typing.EventDict) -> Any:
        return {**always, **event}

    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        told_of_this_process,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderers: list[structlog.typing.Processor] = (
        [structlog.processors.JSONRenderer()]
        if as_json
        else [_harmless, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _Veiled(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                *renderers,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for noisy in ("alembic", "dbos", "httpx", "opentelemetry", "uvicorn.error"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def _harmless(_logger: Any, _method: str, event: structlog.typing.EventDict) -> Any:
    # JSON escapes by itself; as text, what a client named must not move a terminal's cursor or look like another line.
    return {
        name: "\n".join(map(clean, value.split("\n") if name == "exception" else [value]))
        if isinstance(value, str)
        else value
        for name, value in event.items()
    }


class _Veiled(structlog.stdlib.ProcessorFormatter):
    """The whole line, tracebacks included, goes through `veiled` when it is done."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        return veiled(super().format(record))


def veiled(text: str) -> str:
    """`text` without anything that looks like a secret."""
    return _SECRETS.sub(HIDDEN, text)


@contextmanager
def about(**facts: str | int | None) -> Iterator[None]:
    """Let every line that is logged inside, by this thread or this request, say these facts as well."""
    with structlog.contextvars.bound_contextvars(
        **{name: value for name, value in facts.items() if value is not None}
    ):
        yield


def of_request(request_id: str) -> Any:
    """`about` a request, whose id `request_id` then tells."""
    return about(**{_REQUEST: request_id})


def request_id() -> str | None:
    """Id of the request that is being answered; None outside of any."""
    found = structlog.contextvars.get_contextvars().get(_REQUEST)
    return found if isinstance(found, str) else None
