"""The files of `deploy/` hold before the linters of their kinds, and name what the code names."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from opus_pipelines.core.settings import load
from opus_pipelines.lake.run_storage import PORT, VARIABLES, instance_file

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
LINTERS = {  # by file: the command, and what a broken copy of the file has instead
    "compose.yaml": (["check-jsonschema", "--builtin-schema", "vendor.compose-spec"], "healthcheck:", "healthchecks:"),
    "Dockerfile": (["hadolint"], "--no-install-recommends ", ""),
    "values.yaml": (["yamllint", "-c", str(DEPLOY / ".yamllint")], "  type: K8sRunLauncher", "   type: K8sRunLauncher"),
    "kubernetes.yaml": (
        ["kubernetes-validate", "--strict", "--kubernetes-version", "1.30"],
        "containers:",
        "container:",
    ),
}


def linted(command: list[str], *files: Path) -> tuple[int, str]:
    program = Path(sys.executable).with_name(command[0])
    done = subprocess.run(
        [program, *command[1:], *files], capture_output=True, text=True, timeout=120, check=False, cwd=ROOT
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", LINTERS)
def test_a_linter_takes_the_file_and_refuses_a_broken_copy(tmp_path: Path, name: str) -> None:
    command, right, wrong = LINTERS[name]
    text = (DEPLOY / name).read_text()
    assert right in text
    broken = tmp_path / f"broken-{name}"
    broken.write_text(text.replace(right, wrong))
    assert linted(command, DEPLOY / name)[0] == 0
    code, said = linted(command, broken)
    assert code != 0
    assert broken.name in said


def test_every_yaml_file_is_well_formed() -> None:
    files = sorted(DEPLOY.glob("*.yaml"))
    assert [file.name for file in files] == [
        "compose.yaml",
        "dagster.yaml",
        "kubernetes.yaml",
        "values.yaml",
        "workspace.yaml",
    ]
    code, said = linted(["yamllint", "-c", str(DEPLOY / ".yamllint")], *(f for f in files if f.name != "dagster.yaml"))
    assert code == 0, said


def test_the_record_of_the_containers_is_the_one_that_opus_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a command in a container would try to write it anew, and it is mounted for reading alone."""
    for name in (*VARIABLES.values(), PORT):
        monkeypatch.setenv(name, "1")
    assert (DEPLOY / "dagster.yaml").read_text() == instance_file((ROOT / "dagster.yaml").read_text(), "postgres")


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def user_code() -> dict[str, Any]:
    (found,) = yaml.safe_load((DEPLOY / "values.yaml").read_text())["dagster-user-deployments"]["deployments"]
    return dict(found)


def test_the_variables_are_settings_and_name_the_record() -> None:
    environments = [
        compose()["services"]["code"]["environment"],
        {one["name"]: one.get("value", "") for one in user_code()["env"]},
    ]
    for environment in environments:
        settings = load(environ={name: value for name, value in environment.items() if name.startswith("OPUS_")})
        assert settings.ops.dagster_storage == "postgres"
        assert settings.spark.master.startswith("spark://")
        assert "spark.driver.host" in settings.spark.conf
        assert set(VARIABLES.values()) - {"DAGSTER_PG_PASSWORD"} <= set(environment)


def test_no_file_holds_a_password() -> None:
    services = compose()["services"]
    secret = [
        value
        for service in services.values()
        for name, value in service.get("environment", {}).items()
        if "PASSWORD" in name or "SECRET" in name
    ]
    assert len(secret) >= 4
    assert [value for value in secret if not value.startswith("${")] == []
    values = yaml.safe_load((DEPLOY / "values.yaml").read_text())
    assert "postgresqlPassword" not in values["postgresql"]
    assert not values["generatePostgresqlPasswordSecret"]


def test_the_services_find_each_other_and_only_the_web_server_is_reached_from_this_machine() -> None:
    services = compose()["services"]
    (location,) = yaml.safe_load((DEPLOY / "workspace.yaml").read_text())["load_from"]
    asked, command = location["grpc_server"], services["code"]["command"]
    assert command[command.index("--port") + 1] == str(asked["port"])
    assert asked["host"] in services
    ports = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert list(ports) == ["webserver"]
    assert all(port.startswith("127.0.0.1:") for port in ports["webserver"])
    master = services["code"]["environment"]["OPUS_SPARK_MASTER"].removeprefix("spark://").partition(":")[0]
    assert master in services


def test_the_lake_has_one_writer_in_kubernetes_as_here() -> None:
    values = yaml.safe_load((DEPLOY / "values.yaml").read_text())["concurrency"]
    here = yaml.safe_load((ROOT / "dagster.yaml").read_text())["concurrency"]
    assert values["pools"] == {"defaultLimit": here["pools"]["default_limit"], "granularity": "run"}
    assert values["runs"]["maxConcurrentRuns"] == here["runs"]["max_concurrent_runs"]
