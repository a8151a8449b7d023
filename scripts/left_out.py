"""What a comparison of two trees leaves out of the published rows. same_rows.py and golden.py read it."""

# Columns that differ although the rows say the same, in the words of the baseline: `column` in every dataset, or
# `dataset.column`.
LEFT_OUT = frozenset(
    {
        # Hashes that contain the version of the code, and what is named by them.
        "result",
        "model_version",
        "code_version",
        "settings_hash",
        "snapshot",
        "snapshot_before",
        "snapshot_after",
        "wkg_changes.before",
        "workflows_changes.before",
        "history_sources.content",
        "history_sources.version",
        # Hashes of settings and of column names: a renamed key or column changes them. The columns that they sum up are
        # compared themselves.
        "history_sources.content_hash",
        "history_implementations.content_hash",
        # The clock and the run.
        "run_id",
        "generated_at",
        "seconds",
        "history_sources.first_seen",
        "history_sources.last_read",
        "decided_at",
        "forecast",
        "forecasted_at",
        "recorded_at",
        "started",
        "ended",
    }
)
# Views of views.sql that are not compared: the pointers, earlier results, and the clocks of the runs.
NOT_DATASETS = frozenset({"current_snapshot", "current_results", "workflows_earlier", "ops_runs"})


def is_compared(dataset: str, column: str) -> bool:
    """Whether a column, in the words of the baseline, is compared."""
    return column not in LEFT_OUT and f"{dataset}.{column}" not in LEFT_OUT
