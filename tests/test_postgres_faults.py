"""With Dagster's record in Postgres, whose server is killed or whose connections are cut at seeded random moments of a
run: what is published is readable and complete, the next run goes through without help, and no case is lost.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from opus_pipelines.lake.layout import Lake
from opus_pipelines.reporting.status import has_unfinished_runs
from opus_pipelines.reporting.views import connect
from tests import kill_points
from tests.postgres import Server, server
from tests.test_kill import Opus

pytestmark = [pytest.mark.nightly, pytest.mark.model]
MOMENTS = int(os.environ.get("TEST_MOMENTS", "25"))  # of each command
FAULTS = ("killed and started again at once", "killed and started again after the run", "all connections cut")


class Faults(Opus):
    """`opus` on one small lake with its record in a Postgres, which is taken away in the middle of a command."""

    def __init__(self, root: Path, postgres: Server) -> None:
        super().__init__(root)
        self.postgres = postgres
        self.variables = postgres.database("faults")
        self.environment |= self.variables
        self.seen: Counter[tuple[str, str]] = Counter()

    def disturbed(self, command: str, after: float, fault: str) -> bool:
        """Starts a command, does this to its server after so many seconds, and returns whether it went through."""
        process = self.start(command)
        time.sleep(after)
        if fault == FAULTS[2]:
            self.postgres.cut()
        else:
            self.postgres.kill()
            if fault == FAULTS[0]:
                time.sleep(0.3)
                self.postgres.start()
        said = process.communicate(timeout=500)[1]
        if fault == FAULTS[1]:
            self.postgres.start()
        assert process.returncode == 0 or said.count("Postgres") or said.count("its log: opus ui"), said
        return process.returncode == 0

    def cases_lost(self) -> int:
        """How many of the cases that were written are in no case of the current snapshot."""
        query = "SELECT count(DISTINCT implementation_id) FROM wkg_cases"
        return self.cases - int(connect(self.lake).sql(query).fetchall()[0][0])


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    with server() as postgres, pytest.MonkeyPatch.context() as patch:
        made = Faults(tmp_path_factory.mktemp("faults"), postgres)
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
    draw, lake = random.Random(f"postgres {command} {MOMENTS}"), faults.lake
    seconds = faults.seconds[command]
    for number in range(MOMENTS):
        fault = FAULTS[number % len(FAULTS)]
        after = draw.uniform(0.2, seconds)
        faults.change()
        before = state_of(lake, command)
        went_through = faults.disturbed(command, after, fault)
        at = f"{command}: {fault}, {after:.1f} of {seconds:.1f} s"
        faults.seen[fault, "went through" if went_through else "ended with one line"] += 1
        assert kill_points.complaints(lake) == [], at
        code, said = faults.run(command)
        assert code == 0, f"{at}; then: {said}"
        assert not has_unfinished_runs(lake), at
        assert state_of(lake, command) != before, at
        assert kill_points.complaints(lake) + kill_points.leftovers(lake) == [], at
        if command == "rebuild":
            assert faults.cases_lost() == 0, at
    print(dict(faults.seen))
