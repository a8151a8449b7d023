"""The best that the truth allows; it is computed where the sample's dollars are."""

from opus_pipelines.quality.sample.reward_by_truth import best_steps

__all__ = ["best_steps"]
