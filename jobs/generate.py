"""Generation of contracts: one partition each, a contiguous range of them in one run."""

import dagster as dg

JOB = dg.define_asset_job(
    "generate",
    selection=dg.AssetSelection.groups("generation", "workflows", "reports"),
    description="Make the ranked workflows of the chosen contracts; what is up to date is skipped.",
)
