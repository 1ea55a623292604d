"""`python -m tests.fuzz_api ST [SECONDS]`: what schemathesis finds in a real service, with a token and without one.

`ST` is the command `st` of an environment of its own. Exit 1 when an answer is a 5xx, has a status, a media type or a shape
that the document does not describe, or when a request without a token is let in.
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import httpx

from service.api.openapi import operations
from service.records.database import migrate
from service.settings import Settings
from tests.service.api.world import seed, world
from tests.service.serving import Service, serving

SEED: Final = 7
CHECKS: Final = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
# The stream of a job that never ends never ends; tests of its own follow it.
STREAMS: Final = r"/events$"
# Thousands of requests of one client are the point here.
UNBOUNDED: Final = {
    "NINFER_GATE_RATE_LIMIT": "1000000/second",
    "NINFER_GATE_LOGIN_RATE_LIMIT": "1000000/second",
    "NINFER_GATE_MAX_BLOB_BYTES": str(1 << 20),
}


@contextmanager
def served(folder: Path) -> Iterator[Service]:
    """The installed command over rows that the examples of the document speak of; no worker, for jobs are not asked about."""
    data = folder / "data"
    url = Settings(data=data).records_url
    data.mkdir(mode=0o700)
    migrate(url)
    with world(data, url) as made:
        seed(made)
        token = made.token
    with serving(data, "--no-worker", environment=UNBOUNDED, token=token) as service:
        yield service


def fuzzed(st: str, service: Service, document: Path, *options: str, quiet: bool = False) -> bool:
    """Whether nothing was found. Raises: RuntimeError when nothing was asked either."""
    command = [
        st,
        "run",
        str(document),
        f"--url={service.address}",
        f"--seed={SEED}",
        f"--exclude-path-regex={STREAMS}",
        "--generation-database=none",
        "--request-timeout=30",
        "--warnings=off",
        "--no-color",
        *options,
    ]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": str(Path(__file__).with_name("hooks.py"))}
    code = subprocess.run(
        command, cwd=document.parent, env=environment, check=False, capture_output=quiet
    ).returncode
    if code not in (0, 1):
        raise RuntimeError(f"schemathesis ended with {code}")
    return code == 0


def _nobody_is_refused(whole: dict[str, Any]) -> None:
    for _, _, operation in operations(whole):
        operation["responses"].pop("401", None)


def _health_needs_a_token(whole: dict[str, Any]) -> None:
    whole["paths"]["/healthz"]["get"]["security"] = [{"HTTPBearer": []}]


# Documents that are wrong about the service: a run that doesn't see it proves nothing.
WRONG: Final[dict[str, Callable[[dict[str, Any]], None]]] = {
    "status_code_conformance": _nobody_is_refused,
    "ignored_auth": _health_needs_a_token,
}


def main(arguments: list[str]) -> int:
    """The exit code."""
    if not arguments:
        print("usage: python -m tests.fuzz_api ST [SECONDS]", file=sys.stderr)
        return 2
    st, seconds = str(Path(arguments[0]).absolute()), int(arguments[1]) if len(arguments) > 1 else 240
    with TemporaryDirectory() as name, served(Path(name)) as service:
        bearer = {"Authorization": f"Bearer {service.token}"}
        text = httpx.get(f"{service.address}/openapi.json", headers=bearer).raise_for_status().text
        document = Path(name) / "openapi.json"
        for check, change in WRONG.items():
            whole = json.loads(text)
            change(whole)
            document.write_text(json.dumps(whole))
            if fuzzed(st, service, document, "--phases=examples,coverage", f"--checks={check}", quiet=True):
                print(f"BLIND: {check} finds nothing wrong with a document that is wrong", file=sys.stderr)
                return 1
        document.write_text(text)
        phases, checks = "--phases=examples,coverage,fuzzing", f"--checks={','.join(CHECKS)}"
        print("With a token that may do everything", flush=True)
        known = fuzzed(
            st,
            service,
            document,
            phases,
            checks,
            f"--max-time={seconds * 3 // 4}",
            f"--header=Authorization: {bearer['Authorization']}",
        )
        if httpx.get(f"{service.address}/v1/project", headers=bearer).status_code != 200:
            print(
                "LOST: the token was revoked on the way, so most of it was asked without one", file=sys.stderr
            )
            return 1
        print("Without a token, and with wrong ones", flush=True)
        stranger = fuzzed(
            st, service, document, phases, f"{checks},ignored_auth", f"--max-time={seconds // 4}"
        )
        answers = Counter(re.findall(r"\bstatus=(\d{3})\b", service.log.read_text()))
        print(
            "Answers by status:",
            ", ".join(f"{status}: {count:,}" for status, count in sorted(answers.items())),
        )
    return 0 if known and stranger else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
