"""The job that writes the flows of contracts, started by a person; each contract is a partition, each run takes one."""

import dagster as dg

JOB = dg.define_asset_job(
    "flows",
    selection=dg.AssetSelection.groups("flows"),
    description="Write the flows of the chosen contracts' utterances; what is up to date is skipped.",
)
