"""The job that generates contracts, started by a person, a sensor or after a nightly rebuild.

Each contract is a partition, and each run takes one of them.
"""

from collections.abc import Iterable

import dagster as dg

from assets.partitions import CONTRACTS

PARTITION = "dagster/partition"  # the tag by which Dagster knows the contract of a run
JOB = dg.define_asset_job(
    "generate",
    selection=dg.AssetSelection.groups("generation", "workflows", "reports")
    | dg.AssetSelection.assets(["inputs", "intakes"]),
    description="Make the ranked workflows of the chosen contracts; what is up to date is skipped.",
)


def requests(
    known: Iterable[str], wanted: Iterable[str]
) -> tuple[list[dg.RunRequest], list[dg.AddDynamicPartitionsRequest]]:
    """Returns one run for each wanted contract, in order, and the keys that Dagster must know first."""
    keys = sorted(set(wanted))
    new = [key for key in keys if key not in set(known)]
    return [dg.RunRequest(tags={PARTITION: key}) for key in keys], [CONTRACTS.build_add_request(new)] if new else []
