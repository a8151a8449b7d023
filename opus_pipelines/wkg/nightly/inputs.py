"""Versions of what a rebuild is made from, as hashes of its content, for the comparison with what a snapshot was made
from.
"""

from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Settings
from opus_pipelines.history.ingestion.plan import plan_history
from opus_pipelines.lake.layout import Lake
from opus_pipelines.wkg.rebuild.manifest import settings_that_matter
from opus_pipelines.wkg.task_matching.pins import read_pins

ABSENT = "no such folder"


def history_version(settings: Settings) -> str:
    """Returns the hash of the files of history, their settings and the exchange rates that may apply to them.

    It is the same before and after the files are read, and it is `no such folder` where there is no history.
    """
    if not settings.paths.history.is_dir():
        return ABSENT
    rates = settings.currency.usd_per_unit
    plans = plan_history(settings.paths.history, rates, Lake(settings.paths.lake))
    return digest([(plan.name, plan.without_rates) for plan in plans], sorted(rates.items()))


def settings_version(settings: Settings) -> str:
    """Returns the hash of the settings and pins that a snapshot depends on besides its history."""
    merging = settings.wkg.model_dump(mode="json", include={"merge", "merge_threshold", "merge_across_industries"})
    encoder = settings.encoder.model_dump(mode="json", exclude={"batch_size"})
    pins = read_pins(settings.paths.history).model_dump(mode="json")
    return digest(settings_that_matter(settings), merging, encoder, pins)
