"""How often one caller may ask: a token, or an address that nobody knows; counted in this process, in fixed windows.

Failed tries count against their address. What it sends then is refused unread, but for tokens that opened something
here lately: behind one proxy or one router nobody locks the others out.
"""

import math
import time
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

from service.errors import RateLimited
from service.settings import Settings

_HOME_BITS: Final = 64  # of an IPv6 address: who has one has all that begin alike


class Rates:
    """The counts of one process."""

    def __init__(self, settings: Settings) -> None:
        """By the limits of the settings."""
        self._requests = parse(settings.rate_limit)
        self._failures = parse(settings.login_rate_limit)
        self._windows = FixedWindowRateLimiter(MemoryStorage())

    def request(self, token_id: str | None, address: str) -> None:
        """Count a request of a token, or of an address where nobody had to say who they are. Raises: RateLimited."""
        caller = token_id or _home(address)
        if not self._windows.hit(self._requests, "request", caller):
            raise self._refusal(self._requests, "request", caller, "requests")

    def failure(self, address: str) -> None:
        """Count a try that was refused."""
        self._windows.hit(self._failures, "failure", _home(address))

    def require_few_failures(self, address: str) -> None:
        """Raises: RateLimited when this address failed too often."""
        home = _home(address)
        if not self._windows.test(self._failures, "failure", home):
            raise self._refusal(self._failures, "failure", home, "failed tries")

    def _refusal(self, limit: RateLimitItem, what: str, who: str, named: str) -> RateLimited:
        seconds = max(1, math.ceil(self._windows.get_window_stats(limit, what, who).reset_time - time.time()))
        return RateLimited(
            f"More than {limit.amount:,} {named} in {limit.get_expiry():,} seconds.",
            headers={"Retry-After": str(seconds)},
        )


def _home(address: str) -> str:
    try:
        known = ip_address(address)
    except ValueError:  # a socket without addresses, or a proxy's word
        return address[:100]
    if isinstance(known, IPv6Address):
        known = known.ipv4_mapped or known
    if isinstance(known, IPv6Address):
        return str(IPv6Network((int(known), _HOME_BITS), strict=False))
    return str(known)
