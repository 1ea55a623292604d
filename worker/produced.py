"""Which kernels on which devices made a result: told by every shard, and merged into what its job leaves behind.

With the key of each kernel's evidence, so that whoever relies on the result finds whether that was proved.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ninfer_core.kernels.registry import KERNELS
from ninfer_core.selfcheck.result import evidence_key
from worker.devices import Devices

Told = list[dict[str, Any]]
"""[{"device": as a self-check has it, "kernels": {name: key}}]."""


def told(outcomes: Iterable[Mapping[str, Any]], devices: Devices) -> Told:
    """What ran here, on this worker's devices, for these outcomes, which are JSON as `ninfer_core.verify.outcomes` writes it."""
    names: dict[str, set[str]] = {}
    for outcome in outcomes:
        for device, ran in outcome.get("kernels", {}).items():
            names.setdefault(device, set()).update(ran)
    found = []
    for name in sorted(names):
        device = devices.find(name)
        keys = {one: evidence_key(KERNELS[one], device) for one in sorted(names[name]) if one in KERNELS}
        found.append({"device": device.as_json(), "kernels": keys})
    return found


def merged(parts: Iterable[Told | None]) -> Told:
    """All of it, each device once, whatever worker it is of."""
    found: dict[str, dict[str, Any]] = {}
    for part in parts:
        for item in part or ():
            facts = json.dumps(item["device"], sort_keys=True)
            one = found.setdefault(facts, {"device": item["device"], "kernels": {}})
            one["kernels"].update(item["kernels"])
    return [{**item, "kernels": dict(sorted(item["kernels"].items()))} for _, item in sorted(found.items())]
