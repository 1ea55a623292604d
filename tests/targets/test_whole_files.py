"""Files of full size without their weights: structure and inventory in little memory, and no compiler in the process.

How long it takes is measured by `make bench-targets`, not judged here.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ninfer_core.targets import TARGETS, Target
from tests.targets import sparse

REAL = [target for target in TARGETS if not target.document["facts"].get("synthetic")]
MOST_KILOBYTES = 200_000
SCRIPT = """
import json, re, sys
from pathlib import Path
from ninfer_core.opening import open_path
from ninfer_core.targets import TARGETS
from ninfer_core.verify import asked, verify
from ninfer_core.verify.against import Against
with open_path(Path(sys.argv[1])) as opened:
    against = Against(targets=tuple(TARGETS), auto=True, canonical=True)
    report = verify(opened, asked(("structure", "inventory")), against)
compilers = [name for name in sys.modules if name.split(".")[0] in ("numba", "llvmlite")]
kernels = [name for name in ("cpu", "encode", "scan", "parity") if f"ninfer_core.kernels.{name}" in sys.modules]
print(json.dumps({
    "verdict": report.verdict,
    "findings": [finding.message for finding in report.findings],
    "target": report.as_json()["target"],
    "loaded": [*compilers, *kernels],
    # Not from getrusage: that remembers the size of the process that started this one.
    "kilobytes": int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]),
}))
"""


@pytest.mark.parametrize("target", REAL, ids=lambda target: target.identity)
def test_a_whole_artifact_is_judged_by_its_directory(tmp_path: Path, target: Target):
    path = sparse.directory(target, target.revisions[-1]).write(tmp_path / "a.ninfer")
    assert path.stat().st_size > 17_000_000_000
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    answer = json.loads(done.stdout)
    assert answer["findings"] == []
    assert answer["verdict"] == "passed"
    assert answer["target"]["inventory_sha256"] == target.inventory_sha256
    assert answer["loaded"] == []
    assert answer["kilobytes"] < MOST_KILOBYTES
