"""The files that put the service into containers: what can be known of them without an engine that runs them."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.cli import backup_app, service_app  # noqa: F401  add commands of their own
from service.cli.settings import changed_settings
from service.settings import Settings
from tests.cli.build import COMMAND

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "NINFER_GATE_"
VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)(?:(:\?|:-|-)([^}]*))?\}")
# Of the store itself and of whoever speaks S3; every other variable is a setting of ours.
FOREIGN = re.compile(r"(POSTGRES|GARAGE|AWS)_[A-Z_]+")


@pytest.fixture(scope="module")
def compose() -> Any:
    """docker-compose.yml, anchors and merges resolved."""
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))


def examples() -> dict[str, bool]:
    """Variables of .env.example, by whether they must be filled in."""
    found = {}
    for line in (ROOT / ".env.example").read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"(#?)([A-Z0-9_]+)=(.*)", line):
            found[match[2]] = match[1] == ""
            assert match[1] or not match[3], f"{line}: an example of a secret would be used"
    return found


def filled(value: str) -> str:
    """`value` with every variable filled in as .env would."""
    return VARIABLE.sub(lambda found: found[3] if found[2] == ":-" else "1a", value)


def test_every_variable_is_a_setting(compose: Any) -> None:
    names = {name for service in compose["services"].values() for name in service.get("environment", {})}
    ours = {name for name in names if name.startswith(PREFIX)}
    assert all(name.removeprefix(PREFIX).lower() in Settings.model_fields for name in ours)
    assert all(FOREIGN.fullmatch(name) for name in names - ours)
    assert {"NINFER_GATE_DATABASE_URL", "NINFER_GATE_STORE", "AWS_SECRET_ACCESS_KEY"} <= names


@pytest.mark.parametrize("service", ["api", "worker", "migrate"])
def test_the_settings_hold_together(compose: Any, service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    for name, value in compose["services"][service]["environment"].items():
        monkeypatch.setenv(name, filled(value))
    settings = changed_settings({})
    assert settings.records_url == "postgresql://gate:1a@database/gate"
    assert settings.store == "s3://ninfer-gate/content"
    assert settings.metrics_token == "1a"  # noqa: S105  not one
    assert (settings.metrics_port is not None) == (service == "worker")


def test_no_secret_stands_in_the_file_and_none_has_a_default() -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    used = {found[0]: found[1] for found in VARIABLE.findall(text)}
    secret = {name for name in used if re.search("PASSWORD|SECRET|TOKEN|KEY", name)}
    assert len(secret) == 5
    assert all(used[name] == ":?" for name in secret)
    assert "$" not in VARIABLE.sub("", text)
    assert {name for name, needed in examples().items() if needed} == secret
    assert set(examples()) == set(used)
    assert ".env" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_services_wait_for_what_they_need_and_say_how_they_are(compose: Any) -> None:
    services = compose["services"]
    assert set(services) == {"database", "store", "migrate", "api", "worker"}
    assert services["worker"]["deploy"]["replicas"] == 2
    assert all("healthcheck" in service for name, service in services.items() if name != "migrate")
    wanted = {
        "database": "service_healthy",
        "store": "service_healthy",
        "migrate": "service_completed_successfully",
    }
    for name in ("api", "worker"):
        assert {needed: how["condition"] for needed, how in services[name]["depends_on"].items()} == wanted
        # As long as a worker may drain, and the API's requests may take to end.
        assert int(services[name]["stop_grace_period"].removesuffix("s")) > 30
    assert services["migrate"]["restart"] == "no"
    mounted = {
        volume.partition(":")[0] for service in services.values() for volume in service.get("volumes", ())
    }
    assert mounted == set(compose["volumes"])
    for service in services.values():
        for port in service.get("ports", ()):
            assert filled(port).startswith("127.0.0.1:"), (
                "what is published is this machine's alone unless said"
            )


def test_images_are_pinned(compose: Any) -> None:
    for service in compose["services"].values():
        assert re.search(r":v?[0-9]|^ninfer-gate$", service["image"]), service["image"]


@pytest.mark.parametrize("service", ["api", "worker", "migrate"])
def test_commands_exist_with_their_options(compose: Any, service: str) -> None:
    words = compose["services"][service]["command"]
    said = subprocess.run([str(COMMAND), words[0], "--help"], capture_output=True, text=True, check=False)
    assert said.returncode == 0
    assert all(word in said.stdout for word in words if word.startswith("--"))


def test_health_checks_are_programs_that_run(compose: Any) -> None:
    for name in ("api", "worker"):
        command = compose["services"][name]["healthcheck"]["test"]
        assert command[:3] == ["CMD", "python", "-c"]
        compile(command[3], name, "exec")


def test_the_store_keeps_what_it_acknowledged(compose: Any) -> None:
    import tomllib

    document = tomllib.loads(compose["configs"]["garage"]["content"])
    assert (document["data_fsync"], document["metadata_fsync"]) == (True, True)
    assert (
        document["s3_api"]["s3_region"] == compose["services"]["api"]["environment"]["NINFER_GATE_S3_REGION"]
    )
    bucket = compose["services"]["store"]["environment"]["GARAGE_DEFAULT_BUCKET"]
    assert compose["services"]["api"]["environment"]["NINFER_GATE_STORE"].startswith(f"s3://{bucket}/")
    mounts = dict(volume.split(":")[::-1] for volume in compose["services"]["store"]["volumes"])
    assert {document["metadata_dir"], document["data_dir"]} == set(mounts)


def test_the_image_is_locked_not_roots_and_made_of_what_is_there() -> None:
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    verbs = [verb for verb, _ in lines]
    sent = set((ROOT / ".dockerignore").read_text(encoding="utf-8").split())
    for verb, rest in lines:
        if verb == "COPY":
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists(), source
                assert f"!{source.partition('/')[0]}" in sent, source
        for install in re.findall(r"pip install[^&]*", rest):
            assert "--require-hashes" in install or (
                "--no-deps" in install and install.rstrip().endswith(".")
            ), install
    assert verbs.index("USER") < verbs.index("ENTRYPOINT")
    user = next(rest for verb, rest in lines if verb == "USER")
    assert user not in ("root", "0")
    warm = [place for place, (verb, rest) in enumerate(lines) if verb == "RUN" and "selfcheck" in rest]
    assert warm
    assert warm[0] > verbs.index("USER")


def test_the_page_of_operations_names_every_metric_and_setting_as_it_is() -> None:
    from prometheus_client.parser import text_string_to_metric_families

    from service import metrics
    from service.errors import ERRORS

    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    named = {name.removesuffix("_total") for name in re.findall(r"\bninfer_gate_[a-z_]+", page)}
    counted = {
        family.name
        for family in text_string_to_metric_families(metrics.exposition().decode())
        if family.name.startswith("ninfer_gate_")
    }
    gauges = set(re.findall(r"ninfer_gate_[a-z_]+", (ROOT / "service/api/routes/metrics.py").read_text()))
    assert named == counted | gauges
    codes = set(re.findall(r'code="([a-z_]+)"', page))
    assert codes
    assert codes <= {error.code for error in ERRORS} | {"gave_up"}
    for name in re.findall(r"NINFER_GATE_([A-Z0-9_]+)", page):
        assert name.lower() in Settings.model_fields, name
