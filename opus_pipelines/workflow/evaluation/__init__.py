"""What a workflow is worth by EVAL: success, cost, schedule, lead time, Reward, Penalty and uncertainty.

In: a `Workflow`. Out: `Evaluation` and `Score`. Door: `reward.evaluate`.
"""
