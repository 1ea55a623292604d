"""The worker: a process that runs jobs as durable workflows, beside as many others as there are.

Everything a job finds out is kept in our own tables under keys that make writing it twice the same as once, so that a
worker may be killed at any moment, and its work be begun again by another, or by two at once.
"""

import signal
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # that ask a worker to end
