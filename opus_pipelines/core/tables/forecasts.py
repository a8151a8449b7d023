"""Declares the forecasts of running cases."""

from opus_pipelines.core.tables.declaration import dataset

FORECAST_CASES = dataset(
    "forecasts/cases",
    "one row, one running case; opus forecast writes them, and the newest forecast of a source replaces the one before",
    ("forecast case_id"),
    """
    forecast                 id            hash of the history, the running cases and the options
    source                   string        source whose history the forecast was learnt from
    case_id                  string        as the source has it
    client                   string        client of the case
    contract                 string        contract of the case
    snapshot                 id            snapshot that the forecast was made from; kept while its history is the same
    steps                    int64         events so far
    last_activity            string        the last of them
    last_event_at            ts            when it happened
    seen_until               ts            until when nothing more happened
    next_activity            string        most probable next activity; NULL where that is the end of the case
    p_next                   prob          its probability
    p_end                    prob          probability that nothing follows
    rest                     list<string>  expected activities of the rest of the case, if it goes on
    remaining_ms             ms            median of the time from the last event to the end
    remaining_ms_low         ms            lower end of its 90 % interval
    remaining_ms_high        ms            upper end of its 90 % interval
    remaining_cost_usd       usd           median of the cost still to come; NULL where history has no costs
    remaining_cost_usd_low   usd           lower end of its 90 % interval
    remaining_cost_usd_high  usd           upper end of its 90 % interval
    p_success                prob          probability of success; NULL where history has no outcomes
    time_limit_ms            ms            time that a case may take from its first event; NULL where none was stated
    p_late                   prob          probability of exceeding it
    p_limit                  prob          probability of breaking at least one limit; NULL where none was stated
    do_next                  string        the activity to do now; NULL where the case seems to have ended
    do_next_reason           string        most probable, higher success where similar cases succeeded more often
                                           with it, or fewer broken limits where they broke fewer with it
    similar                  int64         past prefixes of cases that the figures rest on
""",
    partitions="source_key forecast_key",
)
FORECAST_STEPS = dataset(
    "forecasts/next_steps",
    "one row, one possible next activity of a running case",
    ("forecast case_id place"),
    """
    forecast      id      the forecast
    source        string  source whose history the forecast was learnt from
    case_id       string  as the source has it
    place         int64   1 for the most probable one
    activity      string  the next activity; NULL for the end of the case
    probability   prob    probability that it is next
    p_success     prob    probability of success if it is; NULL where history has no outcomes
    remaining_ms  ms      median of the remaining time if it is next
    p_limit       prob    probability of breaking at least one limit if it is next; NULL where none was stated
    similar       int64   similar past prefixes that it followed
""",
    partitions="source_key forecast_key",
)
FORECAST_LIMITS = dataset(
    "forecasts/limits",
    "one row, one limit of a running case: of its lead time, cost or steps, or by when one activity is done",
    ("forecast case_id place"),
    """
    forecast     id      the forecast
    source       string  source whose history the forecast was learnt from
    case_id      string  as the source has it
    place        int64   1 for the limit that is most probably broken
    kind         string  lead time, cost, steps, or service level (of one activity)
    activity     string  of a service level, the activity that is limited; NULL for other kinds
    after        string  of a service level, the activity from which it counts; NULL: the first event
    unit         string  unit of the three figures below: ms, usd or steps
    limit_value  float   the limit
    so_far       float   used until the last event; of an activity that is done, until it was done
    expected     float   median of what is used in the end; NULL where unknown, or where the activity hardly comes
    p_broken     prob    probability of exceeding the limit; NULL where history does not know the cost or the activity
    stated_by    string  command, contract or settings
""",
    partitions="source_key forecast_key",
)
