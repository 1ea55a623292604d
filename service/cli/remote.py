"""Commands that speak to a running service: where it is and what opens it, out of the environment."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ninfer_core.errors import NinferError, Usage

if TYPE_CHECKING:
    from service.client import Client

ADDRESS: Final = "NINFER_GATE_URL"
TOKEN: Final = "NINFER_GATE_TOKEN"  # noqa: S105  the name of a variable
DEFAULT_ADDRESS: Final = "http://127.0.0.1:8000"


class Unreachable(NinferError):
    """No answer came from where the service is said to be."""

    code = "unreachable"
    advice = f"Is it running, and is that its address? {ADDRESS} or --url says where it is."


@contextmanager
def connected(address: str | None) -> Iterator["Client"]:
    """The service at `address`, or where the environment says. Raises: Usage; Unreachable when it does not answer."""
    import httpx

    from service.client import Client
    from service.links import broken

    token = os.environ.get(TOKEN, "")
    if not token.strip():
        raise Usage(
            f"put the token of a project into the variable {TOKEN}; a command line is no place for secrets"
        )
    with Client(address or os.environ.get(ADDRESS) or DEFAULT_ADDRESS, token) as client:
        try:
            yield client
        except httpx.TransportError as error:
            raise Unreachable(f"no answer from {client.address}: {broken(error)}") from error
