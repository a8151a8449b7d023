"""Declares the columns with which every dataset of a contract's results begins."""

from opus_pipelines.core.tables.declaration import Dataset, dataset

RESULT = """
    client    string  the client, as written
    contract  string  the contract, as written
    result    id      hash of intakes, contract, snapshot, model, settings and algorithm versions
"""
INTAKE = (
    RESULT
    + """
    intake_id     id  hash of client, contract and folder
"""
)
INTENTION = (
    INTAKE
    + """
    intention_id  id  one goal of the intake
"""
)


def result_dataset(name: str, about: str, key: str, table: str, head: str = INTENTION) -> Dataset:
    """Declares a dataset of a contract's results: every row begins with client, contract and result."""
    lines = [line for line in (head + table).splitlines() if line.strip()]
    return dataset(name, about, "client contract " + key, "\n".join(lines), partitions="client_key contract_key result")
