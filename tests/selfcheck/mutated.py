"""Run as a program on a mutated copy of the package: asks some of its kernels and prints the results as JSON.

Arguments: the copy, which has to be what is imported, then names of kernels; a name that begins with `full:` is asked
at that level.
"""

import json
import sys
import time
from pathlib import Path

from ninfer_core.kernels import registry
from ninfer_core.kernels.devices import find_device
from ninfer_core.kernels.processor import cpu_processor
from ninfer_core.selfcheck.run import check_processor


def main(copy: str, *names: str) -> None:
    """Print one document for each kernel."""
    if not Path(registry.__file__).is_relative_to(copy):
        sys.exit(f"{registry.__file__} is not the mutated copy")
    device = find_device("cpu")
    found = []
    for name in names:
        level, _, kernel = name.rpartition(":")
        kernels = (registry.KERNELS[kernel],)
        results = check_processor(
            cpu_processor(), kernels, level="full" if level else "quick", seed=0, timer=time.perf_counter
        )
        found += [result.as_json(device) for result in results]
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
