"""What a Workflow is worth: success, schedule, cost and Reward (spec A2, A5)."""
