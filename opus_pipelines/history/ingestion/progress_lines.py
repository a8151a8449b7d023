"""The lines about what was read of a source, for a person who waits."""

from opus_pipelines.history.ingestion.plan import SourcePlan
from opus_pipelines.history.ingestion.read_file import Progress
from opus_pipelines.history.ingestion.read_source import SourceResult
from opus_pipelines.history.records.money import remark
from opus_pipelines.history.records.records import Counts

FEW = 20  # files of a source up to which each has a line of progress of its own


def _report_source(plan: SourcePlan, result: SourceResult, progress: Progress) -> None:
    """Reports a line for each file, or one line for all files if they are many."""
    results = result.files
    for file, file_result in zip(plan.files, results, strict=True):
        if file_result.reason or len(plan.files) <= FEW:
            progress(
                f"{plan.name}/{file.path}: "
                + (f"rejected: {file_result.reason}" if file_result.reason else _summary(file_result.counts))
            )
        if file_result.mixed_encodings:
            progress(f"{plan.name}/{file.path}: {file_result.mixed_encodings}")
    if result.joined_cases:
        progress(f"{plan.name}: {result.joined_cases:,} cases stand in several files or places and were put together")
    if plan.settings and (
        missing_rates := remark((code for r in results for code in r.counts.currencies), plan.settings)
    ):
        progress(f"{plan.name}: {missing_rates}")
    if len(plan.files) > FEW:
        whole, cases = sum(r.reason is not None for r in results), sum(r.counts.implementations for r in results)
        progress(f"{plan.name}: {len(results):,} files ({whole:,} rejected whole), {cases:,} cases")


def _summary(counts: Counts) -> str:
    not_work = counts.not_work - counts.duplicates - counts.corrected  # these are told by themselves
    return (
        f"{counts.records:,} records ({counts.used:,} used, {not_work:,} no work, {counts.rejected:,} "
        "rejected), "
        f"{counts.implementations:,} cases"
        + (f", {counts.quarantined:,} put aside whole" if counts.quarantined else "")
        + (f", {counts.duplicates:,} records came twice" if counts.duplicates else "")
        + (f", {counts.corrected:,} were corrected" if counts.corrected else "")
    )
