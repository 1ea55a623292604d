"""`python -m worker`: run jobs until a signal. Settings come from the environment, as `service.settings` reads them.

Exit codes: 0 ended in order; 2 could not start; 75 taken for dead by another worker, and to be started again.
"""

import argparse
import os
import signal
import sys

from worker import SIGNALS


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m worker", description="Run jobs of ninfer-gate.")
    parser.add_argument("--beat-fd", type=int, help="file descriptor of a pipe to write a byte a second into")
    options = parser.parse_args()
    # Before any library starts a thread: one that does not block them would be given our signals.
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    # Before the engine is imported: in its own environment it would look for the cloud of its makers.
    for name in [name for name in os.environ if name.startswith("DBOS")]:
        del os.environ[name]
    from worker.start import start

    return start(options.beat_fd)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads may still wait for the engine's or a kernel's answer: nobody needs it any more.
    os._exit(code)
