"""Self-checks over HTTP: asked for, looked at, found by what they prove, and the whitelist of kernels."""

from datetime import timedelta
from typing import Any

import pytest

from ninfer_core.kernels.registry import KERNELS
from service.api import examples
from tests.service.api.world import World
from tests.service.selfchecked import GPU, MISMATCH, document, stored

OWN = f"/v1/selfchecks/{examples.SELFCHECK_ID}"
WRONG = "encode.Q4G64_F16S.BF16.cpu"


def get(api: World, path: str, **query: Any) -> Any:
    answer = api.call("GET", path, params=query)
    answer.raise_for_status()
    return answer.json()


def test_asked_for_and_not_begun(api: World) -> None:
    answer = api.call("POST", "/v1/jobs", json={"type": "selfcheck"})
    assert answer.status_code == 202
    job = answer.json()
    assert job["request"] == {"type": "selfcheck", "device": "auto", "level": "full", "seed": 0}
    assert (job["type"], job["selfcheck"], job["run"]) == ("selfcheck", None, None)
    assert "selfcheck" not in job["links"]
    assert "none is alive" in job["waits_for"]
    assert get(api, f"/v1/jobs/{examples.SELFCHECK_ID}")["waits_for"] is None
    assert api.queue.enqueued[job["id"]] == ("selfcheck", (job["id"],))
    assert get(api, "/v1/jobs", type="selfcheck")["items"][0]["id"] == job["id"]
    assert api.call("GET", f"/v1/selfchecks/{job['id']}").json()["code"] == "selfcheck_not_found"


def test_an_unknown_member_is_told_which_are_known(api: World) -> None:
    problem = api.call("POST", "/v1/jobs", json={"type": "selfcheck", "devices": "cpu"}).json()
    assert problem["detail"] == "The body does not fit in 1 place."
    said = "no such member; allowed are lane, priority, deadline_seconds, type, device, level, seed"
    assert problem["faults"] == [{"in": "body", "path": "$.devices", "message": said}]
    sent = {**examples.VERIFY, "sample": {"fraction": 0.5, "share": 1}, "more": 1}
    problem = api.call("POST", "/v1/jobs", json=sent).json()
    assert problem["detail"] == "The body does not fit in 2 places."
    inner = {fault["path"]: fault["message"] for fault in problem["faults"]}["$.sample.share"]
    assert inner == "no such member; allowed are fraction, seed"


@pytest.mark.parametrize(
    ("member", "value"), [("device", "gpu"), ("device", "cuda:"), ("level", "some"), ("seed", -1)]
)
def test_what_cannot_be_asked_for(api: World, member: str, value: Any) -> None:
    answer = api.call("POST", "/v1/jobs", json={"type": "selfcheck", member: value})
    assert (answer.status_code, answer.json()["where"]["path"]) == (422, f"$.{member}")


def test_one_that_is_done(api: World) -> None:
    job = get(api, f"/v1/jobs/{examples.SELFCHECK_ID}")
    assert (job["state"], job["selfcheck"]) == ("failed", examples.SELFCHECK_ID)
    assert job["links"]["selfcheck"] == OWN
    found = get(api, OWN)
    assert found["links"]["job"] == f"/v1/jobs/{examples.SELFCHECK_ID}"
    wanted = document(failed=(WRONG,))
    for name in ("schema", "level", "seed", "outcome", "device", "software"):
        assert found[name] == wanted[name], name
    assert [{k: v for k, v in row.items() if k != "current"} for row in found["kernels"]] == wanted["kernels"]
    assert found["counts"]["failed"] == 1
    row = next(row for row in found["kernels"] if row["kernel"] == WRONG)
    assert (row["first_mismatch"], row["current"]) == (MISMATCH, True)


def test_the_last_event_names_it(api: World) -> None:
    text = api.call("GET", f"/v1/jobs/{examples.SELFCHECK_ID}/events").text
    assert f'"selfcheck": "{examples.SELFCHECK_ID}"' in text.replace('":"', '": "')


def test_found_by_what_they_prove(api: World) -> None:
    with api.parts.database.write() as session:
        gpu = stored(session, document(GPU, "quick"), ago=timedelta(days=3)).id
        old = stored(session, document(GPU, "full", digest=f"sha256:{'9' * 64}"), ago=timedelta(days=9)).id

    def ids(**query: Any) -> list[str]:
        return [item["id"] for item in get(api, "/v1/selfchecks", **query)["items"]]

    assert ids(device_class="cuda") == [old, gpu]  # ids are of this moment, whatever age a test gives them
    assert ids(device="cpu") == [examples.SELFCHECK_ID]
    encode = {"format": "Q4G64_F16S", "operation": "encode"}
    assert ids(device_class="cuda", current=True, **encode) == [gpu]
    assert ids(device_class="cuda", current=True, max_age_seconds=86_400, **encode) == []
    assert ids(device_class="cuda", current=True, level="full", **encode) == []
    assert ids(device_class="cuda", max_age_seconds=5 * 86_400) == [gpu]
    assert ids(result="failed", **encode) == [examples.SELFCHECK_ID]
    assert ids(result="failed", format="W8G32_F16S") == []
    assert ids(result="failed", kernel=WRONG) == [examples.SELFCHECK_ID]
    assert ids(result="passed", kernel=WRONG) == []  # though others of its format and operation passed
    assert ids(result="passed", device="cpu", **encode) == [examples.SELFCHECK_ID]
    assert ids(outcome="failed") == [examples.SELFCHECK_ID]
    key = document(GPU, "quick")["kernels"][0]["key"]
    assert ids(key=key) == [gpu]
    first = get(api, "/v1/selfchecks", limit=1)
    assert get(api, "/v1/selfchecks", limit=1, cursor=first["next"])["items"][0]["id"] == gpu
    assert api.call("GET", "/v1/selfchecks", params={"device_class": "tpu"}).status_code == 422


def test_kernels_are_the_whole_whitelist(api: World) -> None:
    items = get(api, "/v1/kernels")["items"]
    assert [item["name"] for item in items] == list(KERNELS.names)
    wrong = next(item for item in items if item["name"] == WRONG)
    assert [(one["outcome"], one["current"]) for one in wrong["evidence"]] == [("failed", True)]
    assert wrong["evidence"][0]["selfcheck"] == examples.SELFCHECK_ID
    some = get(api, "/v1/kernels", device_class="cuda", format="NVFP4", operation="reconstruct")["items"]
    assert [item["dtype"] for item in some] == ["FP32", "BF16"]
    assert [item["name"] for item in get(api, "/v1/kernels", kernel=WRONG)["items"]] == [WRONG]
    for address in ("/v1/kernels", "/v1/selfchecks"):
        for member, name in (("format", "Q9"), ("kernel", "encode.Q9.cpu"), ("operation", "Encode")):
            answer = api.call("GET", address, params={member: name})
            assert (answer.status_code, answer.json()["where"]["path"]) == (422, member)
