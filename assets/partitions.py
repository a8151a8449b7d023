"""Defines one partition for each contract, `client_key__contract_key`.

Two dimensions would give the full product of clients and contracts.
"""

import dagster as dg

CONTRACT = "contract"  # the name under which Dagster keeps the keys
CONTRACTS = dg.DynamicPartitionsDefinition(name=CONTRACT)
