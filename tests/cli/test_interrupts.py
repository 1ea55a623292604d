"""Signals at any moment: everything is cleaned up, the exit code names the signal, and nothing false is said."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ninfer_core.containers.publish import NewFile
from service.cli import app, interrupts
from tests.cli import build
from tests.cli.terminal import Terminal
from tests.cli.test_verify import strict

PARTS = 200

# The command, which gets a signal when it first imports the module named first.
_DURING_IMPORT = """
import os, sys
name, number, *arguments = sys.argv[1:]
class Finder:
    done = False
    def find_spec(self, wanted, *_):
        if wanted == name and not Finder.done:
            Finder.done = True
            os.kill(os.getpid(), int(number))
sys.meta_path.insert(0, Finder())
from service.cli import main
sys.argv = ["ninfer-gate", *arguments]
sys.exit(main())
"""

# A conversion that gets a signal when it has linked as many parts as the first argument says.
_WHILE_PUBLISHING = """
import os, signal, sys
from ninfer_core.containers.publish import NewFile
count, *arguments = sys.argv[1:]
link, linked = NewFile.link, 0
os.fsync = lambda _: None
def counting(self):
    global linked
    if linked == int(count):
        os.kill(os.getpid(), signal.SIGTERM)
    link(self)
    linked += 1
NewFile.link = counting
from service.cli import main
sys.argv = ["ninfer-gate", *arguments]
sys.exit(main())
"""


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint whose artifact is split in many parts when files are small."""
    folder = tmp_path_factory.mktemp("wide")
    values = np.arange(PARTS * 8192, dtype=np.float32)
    build.safetensors(folder / "model.safetensors", {"v": values})
    document = build.recipe({"v": ((len(values),), "F32", "FP32")})
    (folder / "recipe.json").write_text(json.dumps(document))
    return folder


def many_parts(wide: Path, out: Path) -> list[str]:
    """The arguments of a conversion to hundreds of parts."""
    arguments = ["convert", "--checkpoint", wide, "--recipe", wide / "recipe.json", "--out", out]
    arguments += ["--revision", "3", "--max-file-bytes", "36864"]
    return [str(argument) for argument in arguments]


def script(text: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """One run of a changed command."""
    command = [sys.executable, "-c", text, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("linked", [0, 1, 100, 199])
def test_sigterm_while_many_parts_are_published(wide: Path, tmp_path: Path, linked: int) -> None:
    done = script(_WHILE_PUBLISHING, linked, *many_parts(wide, tmp_path / "o.ninfer"), "--json", "-")
    assert done.returncode == 143, done.stderr
    assert "Ended by SIGTERM" in done.stderr
    assert "Nothing is kept" in done.stderr
    document = strict(done.stdout)
    assert (document["verdict"], document["error"]["code"]) == ("cancelled", "cancelled")
    assert "SIGTERM" in document["error"]["message"]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("delay", [0.05, 0.3, 0.7, 1.0])
def test_sigterm_at_any_moment_leaves_all_or_nothing(wide: Path, tmp_path: Path, delay: float) -> None:
    out = tmp_path / "o.ninfer"
    process = subprocess.Popen(
        [str(build.COMMAND), *many_parts(wide, out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(delay)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    if process.returncode == 0 or "was written all the same" in err:
        assert app.run(["verify", str(out)]) == 0
    else:
        assert process.returncode in (143, -signal.SIGTERM)  # the latter before Python runs a line of ours
        assert os.listdir(tmp_path) == []


def test_an_interruption_that_comes_too_late_is_not_told_as_one(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def close(file: NewFile) -> None:
        original(file)
        raise interrupts.Interrupted

    original = NewFile.close
    monkeypatch.setattr(NewFile, "close", close)
    checkpoint, out = made / "checkpoint", tmp_path / "o.ninfer"
    arguments = ["convert", "--checkpoint", checkpoint, "--recipe", checkpoint / "recipe.json", "--out", out]
    code = app.run([*map(str, arguments), "--json", "-"])
    captured = capsys.readouterr()
    assert code == 130
    assert "was written all the same" in captured.err
    assert "Nothing is kept" not in captured.err
    assert "was written all the same" in strict(captured.out)["error"]["message"]
    assert app.run(["verify", str(out)]) == 0
    npy = tmp_path / "x.npy"
    assert app.run(["decode", str(out), "vector", "--out", str(npy)]) == 130
    assert "was written all the same" in capsys.readouterr().err
    assert len(np.load(npy)) == 3000


def test_after_publishing_no_signal_is_heard(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ninfer_core.convert import Conversion

    as_json = Conversion.as_json

    def signalled(conversion: Conversion) -> dict[str, object]:
        for number in interrupts.SIGNALS:
            os.kill(os.getpid(), number)
        return as_json(conversion)

    monkeypatch.setattr(Conversion, "as_json", signalled)
    before = [signal.getsignal(number) for number in interrupts.SIGNALS]
    checkpoint = made / "checkpoint"
    arguments = ["convert", "--checkpoint", checkpoint, "--recipe", checkpoint / "recipe.json"]
    code = app.run([*map(str, arguments), "--out", str(tmp_path / "o.ninfer"), "--json", "-"])
    assert (code, strict(capsys.readouterr().out)["verdict"]) == (0, "written")
    assert [signal.getsignal(number) for number in interrupts.SIGNALS] == before


@pytest.mark.parametrize(
    ("module", "number", "code"),
    [
        ("service.cli.app", signal.SIGINT, 130),
        ("typer", signal.SIGTERM, 143),
        ("numpy", signal.SIGINT, 130),
        ("numpy.linalg", signal.SIGTERM, 143),
        ("ninfer_core.verify.report", signal.SIGHUP, 129),
    ],
)
def test_an_interruption_while_starting(made: Path, module: str, number: int, code: int) -> None:
    done = script(_DURING_IMPORT, module, int(number), "verify", made / "good.ninfer", "--json", "-")
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Nothing is kept" in done.stderr
    document = strict(done.stdout)
    assert (document["schema"], document["verdict"]) == ("ninfer-gate/report/1", "cancelled")
    assert script(_DURING_IMPORT, module, int(number), "verify", made / "good.ninfer").stdout == ""


def test_a_signal_that_is_ignored_stays_ignored(made: Path) -> None:
    text = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + _DURING_IMPORT
    done = script(text, "typer", int(signal.SIGHUP), "verify", made / "good.ninfer", "--json", "-")
    assert (done.returncode, strict(done.stdout)["verdict"]) == (0, "passed")


def test_a_second_signal_does_not_stop_the_cleaning() -> None:
    before = [signal.getsignal(number) for number in interrupts.SIGNALS]
    cleaned = []
    try:
        for number in interrupts.SIGNALS:
            signal.signal(number, interrupts._raise)
        for first in interrupts.SIGNALS:  # one after the other: each is heard once the last is dealt with
            try:
                os.kill(os.getpid(), first)
            except interrupts.Interrupted as interrupt:
                for second in interrupts.SIGNALS:
                    os.kill(os.getpid(), second)
                cleaned.append(interrupts.exit_code(interrupt) - 128)
    finally:
        for number, handler in zip(interrupts.SIGNALS, before, strict=True):
            signal.signal(number, handler)
    assert cleaned == list(interrupts.SIGNALS)


def test_a_terminal_that_hangs_up(huge: Path) -> None:
    terminal = Terminal("verify", huge, columns=100)
    terminal.read_until(lambda text: "GB" in text and "/s" in text)
    assert terminal.hang_up() == 129


def test_many_files_may_be_open(made: Path) -> None:
    text = (
        "import resource, sys\nhard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))\n"
        "from service.cli import main\nsys.argv = ['ninfer-gate', 'version']\nmain()\n"
        "soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]\n"
        "print(soft == (65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)))"
    )
    assert script(text).stdout.splitlines()[-1] == "True"
