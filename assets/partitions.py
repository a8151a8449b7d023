"""One partition a contract, `client_key__contract_key`: two dimensions would be the full product of clients and contracts."""

import dagster as dg

CONTRACTS = dg.DynamicPartitionsDefinition(name="contract")
