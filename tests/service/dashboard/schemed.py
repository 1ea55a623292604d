"""Checks of schemes for pages to show: real documents of the core, hostile words in one, and jobs on their way."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ninfer_core.schemes.catalogue.forms import FORMS
from ninfer_core.schemes.checking import check_parts, checked_json
from ninfer_core.schemes.struct_checking import check_text, struct_json
from service.records import jobs, scheme_checks
from service.records.models import DEFAULT_PROJECT, SchemeCheck
from service.records.types import now
from tests.schemes.vectors import cases
from tests.service.dashboard.rows import HOSTILE, MARKUP, MEGABYTE
from tests.service.dashboard.seed import Seed

TREE = {
    "name": "decision tree",
    "types": [
        {
            "array": {
                "element": {
                    "structure": [
                        {"name": "feature", "type": "UINT8"},
                        {"name": "threshold", "type": "DOUBLE"},
                        {"name": "left", "type": "INT32"},
                        {
                            "name": "class_ids",
                            "constant": {"dtype": "INT32", "dims": [3], "values": [0, 1, 2]},
                        },
                    ]
                },
                "dimension": 7,
            }
        }
    ],
    "root": 0,
    "dims": [],
}


@dataclass(frozen=True, slots=True)
class Schemed:
    """What was seeded, by what it shows."""

    passed: SchemeCheck
    failed: SchemeCheck
    struct: SchemeCheck
    hostile: SchemeCheck
    running: SchemeCheck
    queued: SchemeCheck


def schemed(seed: Seed) -> Schemed:
    """Seed it."""
    return Schemed(
        _check(seed, "gptq", _gptq()),
        _check(seed, "gptq", _gptq(damaged=True)),
        _check(seed, None, struct_json(check_text(json.dumps(TREE).encode(), payload=bytes(91)))),
        _check(seed, "gptq", _hostile()),
        _check(seed, "gptq", None, begun=True),
        _check(seed, None, None),
    )


def _gptq(damaged: bool = False) -> dict[str, Any]:
    case = cases("gptq")[0]
    parts = dict(case.arrays)
    expected = parts.pop("expected_KxN")
    if damaged:
        scales = parts["scales"].copy()
        scales[0, :2] = np.inf
        parts |= {"scales": scales, "qweight": parts["qweight"][::-1]}
    params = {name: case.params[name] for name in ("bits", "group_size")}
    return checked_json(check_parts(FORMS["gptq"], parts, params, expected.shape, reference=expected))


def _hostile() -> dict[str, Any]:
    document = _gptq(damaged=True)
    for finding, text in zip(document["findings"], (MARKUP, MEGABYTE, *HOSTILE), strict=False):
        finding |= {"message": text, "found": text, "where": {"part": text, "index": [1, 2]}}
    document["params"] = {MARKUP: MEGABYTE, "groups": list(range(500))}
    document["parts"] = {text[:1_000]: {"dtype": text[:1_000], "shape": [1], "bytes": 1} for text in HOSTILE}
    return document


def _check(
    seed: Seed, form: str | None, document: Mapping[str, Any] | None, *, begun: bool = False
) -> SchemeCheck:
    job = seed.job("scheme")
    row = SchemeCheck(
        id=job.id,
        project_id=DEFAULT_PROJECT,
        job_id=job.id,
        subject="struct" if form is None else "parts",
        form=form,
        created_at=now(),
    )
    with seed.database.write() as session:
        kept = jobs.get(session, job.id)
        assert kept is not None
        kept.request = {"type": "scheme"} if form is None else {"type": "scheme", "form": form}
        stored = scheme_checks.add(session, row)
        if document is not None or begun:
            jobs.begin(session, job.id)
        if document is not None:
            scheme_checks.save(session, job.id, dict(document))
            jobs.finish(session, job.id, document["verdict"])
    return stored
