"""How a job is to stand in line, as members of its request."""

from pydantic import Field

from service.api.schemas.base import Sent
from service.job_requests import Terms
from service.lanes import HIGHEST_PRIORITY, INTERACTIVE, LOWEST_PRIORITY, Lane

_A_YEAR = 366 * 86_400


class JobSent(Sent):
    """What every job may say beside what it is to do."""

    lane: Lane = Field(
        INTERACTIVE,
        description="`bulk` is for what nobody waits for: it never holds up what is `interactive`.",
    )
    priority: int = Field(
        0,
        ge=LOWEST_PRIORITY,
        le=HIGHEST_PRIORITY,
        description="Of jobs that wait in one lane, a higher one goes first.",
    )
    deadline_seconds: int | None = Field(
        None, ge=1, le=_A_YEAR, description="A job that is not over by then ends as `deadline_exceeded`."
    )

    @property
    def terms(self) -> Terms:
        """As the use case takes them."""
        return Terms(self.lane, self.priority, self.deadline_seconds)
