"""The whole way through the service: start it, push a real checkpoint, convert, verify with parity, show the verdict.

    python examples/service_demo.py CHECKPOINT RECIPE DATA

DATA is a folder for the service's store and database; what lies in it from an earlier run is removed. With KEEP=1 in
the environment the service is left running, so that its pages can be looked at. Exit code 0 only for `passed`.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from service.client import Client

START_SECONDS = 60
PID_FILE = "service.pid"
console = Console(highlight=False)


def main(checkpoint: Path, recipe: Path, data: Path) -> int:
    """Exit code of the demo."""
    keep = os.environ.get("KEEP", "") not in ("", "0")
    if (kept := still_running(data)) is not None:
        raise SystemExit(f"The service of an earlier run is still there. Stop it first: kill {kept}")
    if data.exists():
        shutil.rmtree(data)
    data.mkdir(parents=True)
    service, address, token = start(data)
    try:
        with Client(address, token) as client:
            code, page = run(client, checkpoint, recipe)
    except BaseException:
        stop(service)
        console.print(f"The service's log is {data / 'service.log'}.", style="dim")
        raise
    if keep:
        console.print(f"[b]page[/b]        {address}{page}")
        console.print(f"The service stays at {address}\n  token  {token}\n  stop   kill {service.pid}")
    else:
        stop(service)
        console.print(
            f"\n[b]page[/b]        {page} of the service, which is stopped; `make demo KEEP=1` leaves it running"
        )
    if code == 0:
        show_next(checkpoint, recipe)
    return code


def show_next(checkpoint: Path, recipe: Path) -> None:
    """What can be looked at from here."""
    gate = Path(sys.executable).with_name("ninfer-gate")
    gate = gate.relative_to(Path.cwd()) if gate.is_relative_to(Path.cwd()) else gate
    console.print("\n[b]next[/b]")
    for line in (
        f"{gate} convert --checkpoint {checkpoint} --recipe {recipe} --out build/model.ninfer",
        f"{gate} verify build/model.ninfer --source {checkpoint} --recipe {recipe}",
        f"{gate} inspect build/model.ninfer",
        f"{gate} kernels",
    ):
        console.print(f"  {line}", markup=False, soft_wrap=True)


def start(data: Path) -> tuple["subprocess.Popen[str]", str, str]:
    """The service on a free port, its address and the token that it prints once."""
    log = (data / "service.log").open("w")
    command = [Path(sys.executable).with_name("ninfer-gate"), "serve", "--data", data, "--port", "0"]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
    end = time.monotonic() + START_SECONDS
    address = token = None
    while service.stdout is not None and time.monotonic() < end and (line := service.stdout.readline()):
        if found := re.search(r"http://\S+", line):
            address = found[0]
        if found := re.match(r"\s+token\s+(\S+)", line):
            token = found[1]
            break
    if address is None or token is None:
        stop(service)
        raise SystemExit(f"The service did not start; see {log.name}.")
    (data / PID_FILE).write_text(str(service.pid))
    console.print(f"[b]service[/b]     {address}")
    return service, address, token


def still_running(data: Path) -> int | None:
    """The process that was left running on this folder, if it still is."""
    note = data / PID_FILE
    if not note.is_file():
        return None
    pid = int(note.read_text())
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    return pid if os.fsencode(data) in command else None


def stop(service: "subprocess.Popen[str]") -> None:
    """Ask the service to end, and wait."""
    if service.poll() is None:
        service.send_signal(signal.SIGTERM)
        service.wait(60)


def run(client: Client, checkpoint: Path, recipe: Path) -> tuple[int, str]:
    """Push, convert, verify, show; the exit code, and where the page is."""
    begin = time.monotonic()
    pushed = client.push_checkpoint(checkpoint)
    rate = pushed["bytes"] / (time.monotonic() - begin) / 1e6
    console.print(
        f"[b]checkpoint[/b]  {short(pushed['digest'])}  {pushed['bytes'] / 1e6:,.1f} MB pushed, {rate:,.0f} MB/s"
    )
    console.print(f"            it lies in {checkpoint}", style="dim", soft_wrap=True)
    document = client.push_recipe(recipe)
    console.print(f"[b]recipe[/b]      {short(document['digest'])}  {document['recipe_id']}")
    sources = {"base": pushed["id"]}
    job = wait(
        client,
        "convert",
        {"type": "convert", "checkpoints": sources, "recipe": document["digest"], "output": {"revision": 2}},
    )
    if job["state"] != "passed":
        return refused(client, job), f"/jobs/{job['id']}"
    artifact = job["artifact"]
    console.print(f"[b]artifact[/b]    {short(artifact)}  converted")
    job = wait(
        client,
        "verify",
        {
            "type": "verify",
            "artifact": artifact,
            "checks": [],
            "checkpoints": sources,
            "recipe": document["digest"],
        },
    )
    if job["run"] is None or job["error"] is not None:
        return refused(client, job), f"/jobs/{job['id']}"
    show(client.report(job["run"]))
    return 0 if job["state"] == "passed" else 1, f"/runs/{job['run']}"


def wait(client: Client, what: str, request: dict[str, Any]) -> dict[str, Any]:
    """The finished job, with a bar on the way."""
    columns = (TextColumn("{task.description:<10}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task(what, total=None)
        begin = time.monotonic()
        job = client.start(request)
        job = client.wait(job["id"], follow(bars, bar))
    console.print(f"[b]{what:<11}[/b] {job['state']} in {time.monotonic() - begin:.1f} s")
    return job


def follow(bars: Progress, bar: Any) -> Callable[[dict[str, Any]], None]:
    """Moves the bar as the job says."""

    def heard(job: dict[str, Any]) -> None:
        progress = job["progress"]
        bars.update(bar, total=progress["bytes"], completed=progress["bytes_done"] or 0)

    return heard


def show(report: dict[str, Any]) -> None:
    """The verdict, what was checked, and what ties the words to the source."""
    table = Table(box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.add_column("check")
    table.add_column("outcome")
    table.add_column("objects", justify="right")
    table.add_column("MB", justify="right")
    for check in report["checks"]:
        style = {"passed": "green", "failed": "red"}.get(check["outcome"], "yellow")
        table.add_row(
            check["name"],
            f"[{style}]{check['outcome']}[/]",
            f"{check['objects']:,}",
            f"{check['bytes'] / 1e6:,.1f}",
        )
    console.print(table)
    evidence: dict[str, int] = {}
    for item in report["objects"]:
        evidence[item["evidence"] or "none"] = evidence.get(item["evidence"] or "none", 0) + 1
    console.print("evidence    " + ", ".join(f"{count} {name}" for name, count in sorted(evidence.items())))
    covered = report["coverage"]["bytes"]
    console.print(f"coverage    {covered['full']:,} of {covered['total']:,} bytes of objects checked fully")
    for finding in report["findings"]:
        console.print(f"{finding['severity']:<11} {finding['code']}  {finding['object'] or ''}", markup=False)
    style = "green" if report["verdict"] == "passed" else "red"
    console.print(f"[b {style}]{report['verdict'].upper()}[/]")


def refused(client: Client, job: dict[str, Any]) -> int:
    """Why a job has no artifact or report."""
    console.print(f"[b red]{job['state'].upper()}[/]  {job['error'] or ''}")
    if job["conversion"] is not None:
        for finding in client.items(f"/v1/conversions/{job['conversion']}/findings"):
            console.print(f"{finding['code']}  {finding['message']}", markup=False)
    return 1


def short(digest: str) -> str:
    """A digest for a table."""
    return f"{digest[:19]}…"


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*map(Path, sys.argv[1:])))
