"""From the Workflow Graph to ranked workflows: proposals, plans, alternatives, Reward and Penalty, confidence.

In: `RankingContext`. Out: ranked `Candidate`s. Door: `candidates.ranked_candidates`.
"""
