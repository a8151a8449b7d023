"""One partition a contract, `client_key__contract_key`: two dimensions would be the full product of clients and
contracts.
"""

import dagster as dg

CONTRACT = "contract"  # the name under which Dagster keeps the keys
CONTRACTS = dg.DynamicPartitionsDefinition(name=CONTRACT)
