"""Which tasks of the Work Knowledge Graph a client's batch of flows may use."""

from pathlib import Path

from opus_pipelines.core.schemas import TASKS
from opus_pipelines.flows.batches.inputs import snapshot_activities
from opus_pipelines.lake.layout import Lake, dataset_folder, table_of, write_table


def task(title: str, clients: list[str], industry: str = "banking") -> dict[str, object]:
    return {
        "task_id": f"t{title}",
        "title": title,
        "description": f"canary of {title}",
        "industries": [industry],
        "clients": clients,
        "said": [{"client": client, "description": f"canary of {title} at {client}"} for client in clients],
    }


def test_a_client_sees_its_own_tasks_and_the_names_of_shared_ones(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    rows = [
        task("Check loan", ["Acme"]),
        task("Sign contract", ["Acme", "Bolt"]),
        task("Freeze account", ["Bolt"]),
        task("Pay out", ["Bolt", "Coda"]),
        task("Treat wound", ["Bolt", "Coda"], "health"),
        task("Archive file", []),
    ]
    write_table(TASKS, table_of(TASKS, rows), dataset_folder(lake.snapshot_folder("w1"), TASKS))
    seen = snapshot_activities(lake, "w1", "Acme", "banking").activities
    described = {activity.id: "canary" in activity.description for activity in seen}
    assert described == {"Archive_file": True, "Check_loan": True, "Pay_out": False, "Sign_contract": True}
    assert [activity.id for activity in seen if "Bolt" in activity.description] == []
    assert len(snapshot_activities(lake, "w1").activities) == 6
