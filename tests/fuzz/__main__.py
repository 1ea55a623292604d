"""Runs the fuzzer over each form, one after the other, and says what it found.

`python -m tests.fuzz SECONDS [FOLDER]`: the time divided among the forms. Exit 1 after a crash, whose input is kept.
"""

import subprocess
import sys
from pathlib import Path

from tests.fuzz.seeds import dictionary, seeds
from tests.fuzz.targets import TARGETS

_ONE = "one"


def main(arguments: list[str]) -> int:
    """The exit code."""
    if arguments[:1] == [_ONE]:
        _fuzz(arguments[1], arguments[2:])
    seconds = int(arguments[0]) if arguments else 600
    folder = Path(arguments[1] if len(arguments) > 1 else "build/fuzz")
    failed = [form for form in TARGETS if not _run(form, max(1, seconds // len(TARGETS)), folder / form)]
    for form in failed:
        print(f"FOUND in the {form} form: the input is under {folder / form / 'found'}", file=sys.stderr)
    return 1 if failed else 0


def _run(form: str, seconds: int, folder: Path) -> bool:
    corpus, found = folder / "corpus", folder / "found"
    for made in (corpus, found):
        made.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(form)):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = folder / "words.dict"
    words.write_text(dictionary(form))
    print(f"Fuzzing the {form} form for {seconds} seconds", flush=True)
    options = [
        f"-max_total_time={seconds}",
        "-timeout=20",  # seconds for one input: reading is linear, so an input that takes as long is a finding
        "-rss_limit_mb=4096",
        "-max_len=8192",
        "-print_final_stats=1",
        f"-artifact_prefix={found}/",
        *([f"-dict={words}"] if words.stat().st_size else []),
        str(corpus),
    ]
    return (
        subprocess.run([sys.executable, "-m", "tests.fuzz", _ONE, form, *options], check=False).returncode
        == 0
    )


def _fuzz(form: str, options: list[str]) -> None:
    """Never returns: libFuzzer ends the process."""
    import atheris

    # What was imported to make the seeds is dropped, so that it is imported again with coverage.
    for name in [
        name for name in sys.modules if name.split(".")[0] == "ninfer_core" or name == "tests.fuzz.targets"
    ]:
        del sys.modules[name]
    with atheris.instrument_imports(include=["ninfer_core"]):
        from tests.fuzz.targets import TARGETS as COVERED
    atheris.Setup([sys.argv[0], *options], COVERED[form])
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
