"""With Dagster's record in Postgres, whose server is killed, or to which the network is cut or slow, at seeded random
moments of a run: what is published is readable and complete, the next run goes through without help, and no case and no
intake is lost. TEST_FROM and TEST_MOMENTS choose the moments of each command.
"""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.status import has_unfinished_runs
from opus_pipelines.reporting.views import connect
from tests import kill_points
from tests.network_line import Line, line
from tests.postgres import Server, server
from tests.test_kill import Opus

pytestmark = [pytest.mark.nightly, pytest.mark.model]
FIRST, MOMENTS = int(os.environ.get("TEST_FROM", "0")), int(os.environ.get("TEST_MOMENTS", "25"))
FAULTS = (
    "killed and started again at once",
    "killed and started again after the run",
    "all connections cut",
    "network cut for two seconds",
    "network slow for the rest of the run",
)


class Faults(Opus):
    """`opus` on one small lake with its record in a Postgres, which is taken away in the middle of a command."""

    def __init__(self, root: Path, postgres: Server, network: Line) -> None:
        super().__init__(root)
        self.postgres, self.network = postgres, network
        self.variables = postgres.database("faults") | {"DAGSTER_PG_PORT": str(network.port)}
        self.environment |= self.variables

    def disturbed(self, command: str, after: float, fault: str) -> bool:
        """Starts a command, does this to its server after so many seconds, and returns whether it went through."""
        process = self.start(command)
        time.sleep(after)
        if fault == FAULTS[2]:
            self.postgres.cut()
        elif fault == FAULTS[3]:
            self.network.cut()
            time.sleep(2.0)
            self.network.state = "whole"
        elif fault == FAULTS[4]:
            self.network.state = "slow"
        else:
            self.postgres.kill()
            if fault == FAULTS[0]:
                time.sleep(0.3)
                self.postgres.start()
        said = process.communicate(timeout=500)[1]
        if fault == FAULTS[1]:
            self.postgres.start()
        self.network.state = "whole"
        assert process.returncode == 0 or said.count("Postgres") or said.count("its log: opus ui"), said
        return process.returncode == 0

    def cases_lost(self) -> int:
        """How many of the cases that were written are in no case of the current snapshot."""
        query = "SELECT count(DISTINCT implementation_id) FROM wkg_cases"
        return self.cases - int(connect(self.lake).sql(query).fetchall()[0][0])

    def intakes(self) -> int:
        """How many intakes the current results have."""
        query = "SELECT count(DISTINCT intake_id) FROM workflows_optimized"
        return int(connect(self.lake).sql(query).fetchall()[0][0])


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    with server() as postgres, line(postgres.port) as network, pytest.MonkeyPatch.context() as patch:
        made = Faults(tmp_path_factory.mktemp("faults"), postgres, network)
        for name, value in made.variables.items():
            patch.setenv(name, value)
        made.change()
        for command in ("rebuild", "generate"):
            assert made.run(command)[0] == 0
        yield made


def state_of(lake: Lake, command: str) -> str:
    return str(lake.current_snapshot() if command == "rebuild" else [one["result"] for one in lake.results()])


@pytest.mark.parametrize("command", ["rebuild", "generate"])
def test_the_server_is_taken_away_at_random_moments(faults: Faults, command: str) -> None:
    lake, seconds = faults.lake, faults.seconds[command]
    for number in range(FIRST, FIRST + MOMENTS):
        draw = random.Random(f"postgres {command} {number}")
        fault = FAULTS[number % len(FAULTS)]
        after = draw.uniform(0.2, seconds)
        faults.change()
        before = state_of(lake, command)
        went_through = faults.disturbed(command, after, fault)
        at = f"{command}: {fault}, {after:.1f} of {seconds:.1f} s"
        assert kill_points.complaints(lake) == [], at
        code, said = faults.run(command)
        assert code == 0, f"{at}; then: {said}"
        assert not has_unfinished_runs(lake), at
        assert state_of(lake, command) != before, at
        assert kill_points.complaints(lake) + kill_points.leftovers(lake) == [], at
        if command == "rebuild":
            assert faults.cases_lost() == 0, at
        else:
            assert faults.intakes() == 1, at
        print(f"{at}: {'went through' if went_through else 'ended with one line'}", flush=True)
