"""Requests of ours to addresses that somebody else named: to nobody inside our own network, and to no other than we looked at.

A name is resolved once. Every address that it has must be public, or lie in a network that the settings allow; then the
connection goes to that very address, with the name in its certificate and its `Host`. No redirect is followed.
"""

import asyncio
import json
import socket
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from ssl import SSLContext
from typing import Any, Final

import httpx

from ninfer_core.errors import NinferError
from service.settings import Settings

_SECONDS: Final = 10.0  # for a whole request
_LAST_PORT: Final = 65_535
_LONGEST: Final = 2_000  # characters of an address
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")  # RFC 6052: its last 32 bits are an IPv4 address

Ip = IPv4Address | IPv6Address


class OutboundRefused(NinferError):
    """An address that we do not ask."""

    code = "outbound_refused"


class OutboundFailed(NinferError):
    """No answer, or one that is no use."""

    code = "outbound_failed"


class Outbound:
    """The way out, by the settings of this service."""

    def __init__(self, settings: Settings) -> None:
        """Raises: ValueError when `outbound_private` holds something that is no network."""
        self._allowed = [ip_network(network) for network in settings.outbound_private]
        self._trusted = cache(httpx.create_ssl_context)  # reads every authority; SSL_CERT_FILE names others

    def document(self, address: str, most_bytes: int) -> Any:
        """The JSON document at an address. Raises: OutboundRefused, OutboundFailed."""
        url = _url(address)
        found = self._resolved(url)
        try:
            text = asyncio.run(_fetched(url, found, most_bytes, self._trusted()))
        except TimeoutError:
            raise OutboundFailed(f"{url.host} did not answer within {_SECONDS:g} seconds") from None
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError) as error:
            raise OutboundFailed(f"{url.host} did not answer: {type(error).__name__}") from error
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise OutboundFailed(f"what {url.host} answers is no JSON") from None

    def _resolved(self, url: httpx.URL) -> Sequence[Ip]:
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            rows = socket.getaddrinfo(url.raw_host.decode("ascii"), port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise OutboundFailed(f"{url.host} has no address") from None
        found = list(dict.fromkeys(ip_address(row[4][0]) for row in rows))
        refused = [one for one in found if not (self._is_allowed(one) or is_public(one))]
        if refused or not found:
            raise OutboundRefused(
                f"{url.host} has the address {refused[0] if refused else 'of nobody'}, which is not public; "
                "`outbound_private` of the service's settings allows networks"
            )
        if url.scheme != "https" and not all(map(self._is_allowed, found)):
            raise OutboundRefused(f"{url.host} is asked over https only")
        return found

    def _is_allowed(self, address: Ip) -> bool:
        return any(one in network for network in self._allowed for one in (address, *_inner(address)))


def is_public(address: Ip) -> bool:
    """Whether an address, and any that it stands for, belongs to the internet at large."""
    if isinstance(address, IPv6Address) and (address.is_site_local or address.scope_id is not None):
        return False
    inner = _inner(address)
    if inner:
        return all(map(is_public, inner))
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _inner(address: Ip) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses inside an IPv6 address that is a way to reach them."""
    if isinstance(address, IPv4Address):
        return ()
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address.teredo is not None:
        return address.teredo
    if address in _TRANSLATED:
        return (IPv4Address(int(address) & 0xFFFF_FFFF),)
    return ()


def _url(address: str) -> httpx.URL:
    if len(address) > _LONGEST:
        raise OutboundRefused("the address is too long")
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, TypeError, ValueError):
        raise OutboundRefused("this is no address") from None
    if url.scheme not in ("https", "http") or not url.host:
        raise OutboundRefused("only https addresses are asked")
    if (url.port or 0) > _LAST_PORT:
        raise OutboundRefused("no port has this number")
    if url.userinfo:
        raise OutboundRefused("an address that we ask holds no user and no password")
    return url


async def _fetched(url: httpx.URL, addresses: Sequence[Ip], most_bytes: int, trusted: SSLContext) -> bytes:
    async with (
        asyncio.timeout(_SECONDS),
        # No proxy and no .netrc of the environment: they would send what we looked at elsewhere.
        httpx.AsyncClient(
            verify=trusted, trust_env=False, follow_redirects=False, timeout=_SECONDS
        ) as client,
    ):
        for address in addresses:
            with suppress(httpx.ConnectError):  # such as over IPv6 where there is none
                return await _answered(client, url, address, most_bytes)
    raise OutboundFailed(f"{url.host} cannot be connected to")


async def _answered(client: httpx.AsyncClient, url: httpx.URL, address: Ip, most_bytes: int) -> bytes:
    request = client.build_request(
        "GET",
        url.copy_with(host=str(address)),
        headers={
            "Host": url.netloc.decode("ascii"),
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        },
        extensions={"sni_hostname": url.raw_host.decode("ascii")},
    )
    response = await client.send(request, stream=True)
    try:
        if response.status_code != 200:
            raise OutboundFailed(f"{url.host} answered with {response.status_code}")
        text = bytearray()
        async for piece in response.aiter_raw():
            text += piece
            if len(text) > most_bytes:
                raise OutboundFailed(f"what {url.host} answers is larger than {most_bytes:,} bytes")
        return bytes(text)
    finally:
        await response.aclose()
