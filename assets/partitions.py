"""Defines one partition for each contract, `client_key__contract_key`.

Two dimensions would give the full product of clients and contracts.
"""

from collections.abc import Iterable

import dagster as dg

CONTRACT = "contract"  # the name under which Dagster keeps the keys
CONTRACTS = dg.DynamicPartitionsDefinition(name=CONTRACT)


def register(instance: dg.DagsterInstance, keys: Iterable[str]) -> None:
    """Tells Dagster of the contracts that it does not know yet, sorted."""
    known = set(instance.get_dynamic_partitions(CONTRACT))
    if new := sorted(set(keys) - known):
        instance.add_dynamic_partitions(CONTRACT, new)
