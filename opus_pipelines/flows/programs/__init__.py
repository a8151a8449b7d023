"""Workflow programs (AutoFlow, CoRE): run step by step with tools or a language model, and improved by reward.

In: a CoRE program, tools, and tasks with a reward; or the plans of a contract. Out: a complete trace, and a better
program with its learning curve. Doors: `flows.programs.interpreter.run` and `flows.programs.search.improve`.
"""
