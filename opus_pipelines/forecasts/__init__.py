"""Forecasts of running cases, learnt from history: next activities, the rest, remaining time and cost, success.

In: traces of past and of running cases. Out: for each running case probable next activities, the rest, intervals of the
remaining time and cost, the chance of success and of exceeding a limit. Door: `forecaster.Forecaster`.
"""
