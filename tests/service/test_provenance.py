"""Where numbers come from, over the API: the synthetic model with every format and move, converted, verified, asked about."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import rfc8785

from ninfer_core.formats import FORMATS
from ninfer_core.targets import registered, registered_recipe
from ninfer_core.verify.against import NO_REGISTERED
from service.client import Client
from tests.build import write_artifact
from tests.mini_hybrid import IDENTITY, MiniHybrid, checkpoint, document
from tests.service.serving import Service, serving
from tests.service.test_equality import by_command_line, without_file_names

TARGET = registered(*IDENTITY.split("/"))[0]
RECIPE_ID = str(TARGET.recipe_id)
PROFILE = "MAXABS_F16_RECIP_RNE_V1"


@dataclass(frozen=True)
class World:
    """A service that has converted the model and verified it once."""

    service: Service
    client: Client
    model: MiniHybrid
    checkpoints: dict[str, str]
    inputs: dict[str, str]
    artifact: str
    run: dict[str, Any]  # the job of the first verification
    conversion: dict[str, Any]

    def convert(self, **more: Any) -> dict[str, Any]:
        """The job of a conversion by the registered recipe."""
        sources = {"checkpoints": self.checkpoints, "inputs": self.inputs}
        return job(self.client, {"type": "convert", "recipe": RECIPE_ID, **sources, **more})

    def verify(self, artifact: str, **more: Any) -> dict[str, Any]:
        """The job of a verification with everything that is known of the model."""
        sources = {"checkpoints": self.checkpoints, "inputs": self.inputs}
        asked = {"recipe": "auto", "target": "auto", "canonical": True, **sources, **more}
        return job(self.client, {"type": "verify", "artifact": artifact, **asked})

    def get(self, path: str, **query: str) -> Any:
        """The JSON of an address."""
        return self.client.request("GET", path, params=query)


def job(client: Client, request: dict[str, Any]) -> dict[str, Any]:
    """A job, once it is over."""
    return client.wait(client.start(request)["id"], timeout_seconds=180)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("provenance")
    model = checkpoint(folder / "model")
    with serving(folder / "data") as service, service.client() as client:
        checkpoints = {
            role: client.push_checkpoint(path, repository=f"claimed/{role}")["id"]
            for role, path in model.roles.items()
        }
        inputs = {name: client.push_file(path) for name, path in model.inputs.items()}
        sources = {"checkpoints": checkpoints, "inputs": inputs}
        made = job(client, {"type": "convert", "recipe": RECIPE_ID, **sources})
        assert made["state"] == "passed", made
        request = {"type": "verify", "recipe": "auto", "target": "auto", "canonical": True, **sources}
        run = job(client, {**request, "artifact": made["artifact"]})
        yield World(service, client, model, checkpoints, inputs, made["artifact"], run, made)


@pytest.fixture(scope="module")
def file(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The converted artifact on the disk."""
    path = tmp_path_factory.mktemp("file") / "model.ninfer"
    world.client.fetch(world.artifact, path)
    return path


def options(world: World) -> list[object]:
    """The sources, as the command line takes them."""
    given: list[object] = []
    for role, path in world.model.roles.items():
        given += ["--source", f"{role}={path}"]
    for name, path in world.model.inputs.items():
        given += ["--input", f"{name}={path}"]
    return given


def test_the_registered_recipe_makes_the_known_artifact(world: World) -> None:
    assert world.artifact == f"sha256:{document('golden')['artifact']['sha256']}"


def test_a_report_with_everything_is_that_of_the_command_line(world: World, file: Path) -> None:
    assert world.run["state"] == "passed"
    expected = by_command_line(
        "verify", file, "--target", "auto", "--canonical", "--recipe", "auto", *options(world)
    )
    report = world.client.report(world.run["run"])
    assert without_file_names(report) == without_file_names(expected)
    assert list(report) == list(expected)
    assert {check["outcome"] for check in report["checks"]} == {"passed"}
    assert {check["coverage"] for check in report["checks"]} == {"full"}


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ({"target": IDENTITY}, ["--target", IDENTITY]),
        ({"target": "auto"}, ["--target", "auto"]),
        ({"recipe": RECIPE_ID}, ["--recipe", RECIPE_ID]),
        ({"recipe": "auto", "checks": ["restrictions"]}, ["--recipe", "auto", "--checks", "restrictions"]),
        ({"checks": ["inventory"]}, ["--checks", "inventory"]),
        ({"checks": ["parity", "source"]}, ["--checks", "parity,source"]),
        ({"checks": ["structure", "inventory"], "target": "auto"}, ["--target", "auto", "--checks", "structure,inventory"]),
    ],
)  # fmt: skip
def test_reports_of_parts_are_those_of_the_command_line(
    world: World, file: Path, asked: dict[str, Any], given: list[str]
) -> None:
    done = job(world.client, {"type": "verify", "artifact": world.artifact, "full": True, **asked})
    expected = by_command_line("verify", file, *given)
    assert without_file_names(world.client.report(done["run"])) == without_file_names(expected)
    assert done["state"] == expected["verdict"]


def test_without_a_registered_recipe_the_report_says_so_as_on_the_command_line(
    world: World, tmp_path: Path
) -> None:
    path = tmp_path / "unknown.ninfer"
    write_artifact(path, {"w": (FORMATS["BF16"], (4, 64), np.zeros(512, np.uint8))})
    pushed = world.client.push_artifact([path])["digest"]
    done = job(world.client, {"type": "verify", "artifact": pushed, "recipe": "auto"})
    report = world.client.report(done["run"])
    assert without_file_names(report) == without_file_names(
        by_command_line("verify", path, "--recipe", "auto")
    )
    assert (done["state"], done["request"]["recipe"]) == ("incomplete", "auto")
    reasons = {check["name"]: check["reason"] for check in report["checks"]}
    assert reasons["restrictions"] == reasons["relations"] == NO_REGISTERED


def test_auto_knows_a_file_that_names_no_identity_by_its_inventory(
    world: World, repacked: dict[str, Any]
) -> None:
    """A recipe is chosen for revision 3 as the target is."""
    done = job(world.client, {"type": "verify", "artifact": repacked["artifact"], "recipe": "auto"})
    assert world.client.report(done["run"])["recipe"]["recipe_id"] == RECIPE_ID


def test_a_sampled_report_is_that_of_the_command_line(world: World, file: Path) -> None:
    sample_of = {"fraction": 0.05, "seed": 3}
    done = world.verify(world.artifact, sample=sample_of, canonical=False, target=None, full=True)
    sample = ["--sample", "0.05", "--seed", "3"]
    expected = by_command_line("verify", file, "--recipe", "auto", *options(world), *sample)
    report = world.client.report(done["run"])
    assert without_file_names(report) == without_file_names(expected)
    assert report["coverage"]["objects"]["sampled"] > 0
    assert world.get(f"/v1/runs/{done['run']}")["sample"] == {"fraction": 0.05, "seed": 3}


def test_a_second_run_takes_everything_over(world: World) -> None:
    second = world.verify(world.artifact)
    report = world.client.report(second["run"])
    assert report["verdict"] == "passed"
    assert report["coverage"]["objects"]["reused"] == report["coverage"]["objects"]["total"] == 114
    assert {item["reused_from"]["run"] for item in report["objects"]} == {world.run["run"]}
    assert second["progress"]["bytes"] < world.run["progress"]["bytes"] / 20
    full = world.verify(world.artifact, full=True)
    assert world.client.report(full["run"])["coverage"]["objects"]["reused"] == 0


def test_the_chain_is_canonical_and_its_tag_is_its_digest(world: World) -> None:
    headers = {"Authorization": f"Bearer {world.service.token}"}
    path = f"{world.service.address}/v1/provenance/artifacts/{world.artifact}"
    answer = httpx.get(path, headers=headers)
    told = answer.json()
    digest = hashlib.sha256(answer.content).hexdigest()
    assert answer.content == rfc8785.dumps(told)
    assert answer.headers["etag"] == f'"sha256:{digest}"'
    again = httpx.get(path, headers={**headers, "If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    assert told["artifact"]["digest"] == world.artifact
    assert told["artifact"]["objects"] == 114
    assert told["claims"] is None  # revision 2 has no place for any
    (made,) = told["conversions"]
    assert made["id"] == world.conversion["conversion"]
    assert made["target"] == TARGET.digest
    assert made["seconds"] > 0
    assert made["command"].startswith("ninfer-gate convert --recipe ")
    assert set(made["host"]) == {"cpu", "cores"}
    conversion = world.get(f"/v1/conversions/{made['id']}")
    record = httpx.get(f"{world.service.address}{conversion['links']['provenance']}", headers=headers).content
    assert conversion["record"] == f"sha256:{hashlib.sha256(record).hexdigest()}"
    assert record == rfc8785.dumps(json.loads(record))
    assert set(made["environment"]) == {"python", "machine", "numba", "llvmlite", "numpy"}
    assert [target["digest"] for target in told["targets"]] == [TARGET.digest]
    assert [recipe["recipe_id"] for recipe in told["recipes"]] == [RECIPE_ID]
    assert [recipe["target"] for recipe in told["recipes"]] == [TARGET.digest]
    profiles = {profile["name"]: profile for profile in told["encoder_profiles"]}
    assert set(profiles) == {PROFILE, "MAXABS_BF16S_RECIP_E4M3FN_RNE_V1"}
    for profile in profiles.values():
        for member in ("specification_digest", "vectors_digest", "semantic_digest", "implementation_digest"):
            assert profile[member].startswith("sha256:"), member
    for source in told["checkpoints"]:
        role = next(name for name, id_ in world.checkpoints.items() if id_ == source["id"])
        assert source["claimed"] == {"repository": f"claimed/{role}", "revision": None, "license": None}
        assert source["verified"] == {role: world.run["run"]}
        for held in source["files"]:
            content = (world.model.roles[role] / held["name"]).read_bytes()
            assert held["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    bases = {(fact["kind"], fact["basis"]) for fact in told["facts"]}
    kinds = ("recipe", "checkpoint", "target", "encoder_profile", "format", "tool_version")
    assert {(kind, basis) for kind in kinds for basis in ("converted", "verified")} <= bases


def test_an_object_names_its_sources_byte_for_byte(world: World) -> None:
    report = world.client.report(world.run["run"])
    seen = set()
    for item in report["objects"]:
        told = world.get(f"/v1/provenance/artifacts/{world.artifact}/object", name=item["name"])
        assert told["identity"] == item["identity"]
        origin = told["origins"][0]
        assert (origin["basis"], origin["conversion"]) == ("converted", world.conversion["conversion"])
        assert origin["sources"] or origin["inputs"]
        for source in origin["sources"]:
            folder = world.model.roles.get(source["role"] or "")
            path = world.model.inputs[source["file"]] if folder is None else folder / source["file"]
            content = path.read_bytes()
            assert source["file_digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
            assert 0 <= source["begin"] < source["end"] <= len(content)
        if item["kind"] == "resource":
            assert hashlib.sha256(content[source["begin"] : source["end"]]).hexdigest() == item["sha256"]
        seen.add(origin["encoder"])
        assert told["runs"][-1]["evidence"] == item["evidence"]
    assert PROFILE in seen
    assert len(seen) == 6  # every encode rule


def test_reverse_queries(world: World) -> None:
    told = world.get(f"/v1/provenance/artifacts/{world.artifact}")
    id_ = next(iter(world.checkpoints.values()))
    digest = next(source["digest"] for source in told["checkpoints"] if source["id"] == id_)
    conditions = {
        "encoder_profile": PROFILE,
        "recipe": told["recipes"][0]["digest"],
        "target": TARGET.digest,
        "checkpoint": digest,
        "format": "NVFP4",
        "tool_version": told["runs"][0]["versions"]["ninfer_gate"],
    }
    for asked in ({name: value} for name, value in conditions.items()):
        assert world.artifact in [item["artifact"] for item in world.get("/v1/provenance", **asked)["items"]]
    (whole,) = world.get("/v1/provenance", **conditions, basis="verified")["items"]
    assert whole["artifact"] == world.artifact
    assert {fact["basis"] for fact in whole["facts"]} == {"claimed", "converted", "verified"}
    for other in ({"checkpoint": id_}, {"target": IDENTITY}):
        items = world.get("/v1/provenance", **other)["items"]
        assert world.artifact in [item["artifact"] for item in items]
    nothing = world.get("/v1/provenance", **conditions | {"format": "Q4G64_F16S", "recipe": "sha256:none"})
    assert nothing["items"] == []


@pytest.fixture(scope="module")
def repacked(world: World) -> dict[str, Any]:
    """The same model as revision 3, in several files: its conversion's job."""
    done = world.convert(output={"revision": 3, "max_file_bytes": 1 << 20, "name": "parts.ninfer"})
    assert done["state"] == "passed", done
    return done


def test_repacking_keeps_identities_and_content_root(world: World, repacked: dict[str, Any]) -> None:
    assert repacked["artifact"] != world.artifact
    assert len(world.get(f"/v1/artifacts/{repacked['artifact']}")["files"]) > 2
    plain = job(world.client, {"type": "verify", "artifact": repacked["artifact"]})
    own, first = world.client.report(plain["run"]), world.client.report(world.run["run"])
    assert own["artifact"]["content_root"] == first["artifact"]["content_root"]
    identities = {item["name"]: item["identity"] for item in first["objects"]}
    assert {item["name"]: item["identity"] for item in own["objects"]} == identities
    some = next(item for item in first["objects"] if item["format"] == "NVFP4")
    found = list(world.client.items(f"/v1/provenance/tensors/{some['identity']}", limit="1"))
    assert [item["artifact"] for item in found] == [world.artifact, repacked["artifact"]]
    assert {item["object"]["name"] for item in found} == {some["name"]}


def test_what_an_artifact_claims_is_a_claim_until_parity_proved_it(
    world: World, repacked: dict[str, Any], tmp_path: Path
) -> None:
    """The same claims in a file of other words: they stay claims, whatever they say."""
    listing = world.get(f"/v1/artifacts/{repacked['artifact']}")["files"]
    paths = [tmp_path / entry["name"] for entry in listing]
    for entry, path in zip(listing, paths, strict=True):
        world.client.fetch(entry["digest"], path)
    entry = next(path for path in paths if path.suffix == ".ninfer")
    content = bytearray(entry.read_bytes())
    item = next(one for one in world.client.report(world.run["run"])["objects"] if one["format"] == "BF16")
    place = content.find(world_bytes(world, item))
    assert place > 0
    content[place] ^= 1
    entry.write_bytes(content)
    pushed = world.client.push_artifact(paths)["digest"]
    done = world.verify(pushed, canonical=False, target=None, recipe=RECIPE_ID)
    assert done["state"] == "failed"
    told = world.get(f"/v1/provenance/artifacts/{pushed}")
    assert told["claims"]["provenance"]["recipe"]["recipe_id"] == RECIPE_ID
    assert {fact["basis"] for fact in told["facts"]} == {"claimed"}
    assert {fact["kind"] for fact in told["facts"]} >= {"recipe", "checkpoint", "format"}
    assert all(source["verified"] == {} for source in told["checkpoints"])
    recipe = next(fact["value"] for fact in told["facts"] if fact["kind"] == "recipe")
    artifacts = [
        item["artifact"] for item in world.get("/v1/provenance", recipe=recipe, basis="verified")["items"]
    ]
    assert world.artifact in artifacts
    assert pushed not in artifacts
    honest = world.verify(repacked["artifact"], canonical=False, target=None, recipe=RECIPE_ID)
    assert honest["state"] == "passed"


def world_bytes(world: World, item: dict[str, Any]) -> bytes:
    """The payload of an object of the first artifact."""
    headers = {"Authorization": f"Bearer {world.service.token}"}
    content = httpx.get(f"{world.service.address}/v1/blobs/{world.artifact}", headers=headers).content
    start = len(content) - max(
        one["offset"] + one["bytes"] for one in world.client.report(world.run["run"])["objects"]
    )
    return content[start + item["offset"] : start + item["offset"] + item["bytes"]]


def test_two_recipes_that_give_the_same_tensor_share_its_identity(world: World) -> None:
    """Another way to the same words, and another model that is called after them."""
    text = registered_recipe(RECIPE_ID)
    assert text is not None
    whole = json.loads(text)
    rule = next(
        rule
        for rule in whole["rules"]
        if rule["encode"] == PROFILE and rule["value"]["op"] == "tensor" and "each" not in rule
    )
    fmt = TARGET.by_name[rule["object"]].format
    assert fmt is not None
    value = rule["value"]
    source = {name: one for name, one in whole["sources"][value["from"]].items() if name != "layer_types"}
    other = {
        "schema": "ninfer-recipe/1",
        "identity": {"model_id": "another", "weights_id": "one"},
        "recipe_id": "another-v1",
        "sources": {value["from"]: {**source, "exact_tensor_names": False}},
        "rules": [
            {
                "object": "elsewhere",
                "value": {"op": "reshape", "shape": value["shape"], "of": value},
                "encode": PROFILE,
                "format": fmt.name,
            }
        ],
    }
    role = value["from"]
    request = {"type": "convert", "recipe": other, "checkpoints": {role: world.checkpoints[role]}}
    done = job(world.client, request)
    assert done["state"] == "passed", world.get(f"/v1/conversions/{done['conversion']}/findings")
    told = world.get(f"/v1/provenance/artifacts/{world.artifact}/object", name=rule["object"])
    places = list(world.client.items(f"/v1/provenance/tensors/{told['identity']}"))
    assert {(place["artifact"], place["object"]["name"]) for place in places} >= {
        (world.artifact, rule["object"]),
        (done["artifact"], "elsewhere"),
    }
