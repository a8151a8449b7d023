"""Figures as a person reads them; they stand in `opus_pipelines.words`, for reports too."""

from opus_pipelines.words import grid, hours, number, share, usd, within

__all__ = ["grid", "hours", "number", "share", "usd", "within"]
