"""How long an upload may rest."""

from datetime import datetime, timedelta

from service.records.types import now
from service.settings import Settings


def expiry(settings: Settings) -> datetime:
    """When an upload that is touched now is given up."""
    return now() + timedelta(seconds=settings.upload_seconds)
