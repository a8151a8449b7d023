"""Flows: from an utterance, a requirement or a program to a flow with blocks.

In: texts of people, a catalogue of activities or steps, and flows to learn from. Out: flows of the block model, flows
of an enterprise platform as JSON, and traces of programs. Doors: `from_text.generator.learn`,
`batches.batch.contract_batch`, `enterprise.composer.Composer` and `programs.interpreter.run`.

Inside:
- `text`: what an utterance says of a flow, without a catalogue: steps, loops, conditions, wishes to edit;
- `from_text`: flows from utterances: a clause becomes an activity of the catalogue, clauses become a flow or edits; a
  language model may write them instead;
- `batches`: flows for many utterances: those of a contract in the lake, and the scores of a flow;
- `enterprise`: flows of an enterprise platform: trigger, actions and flow logic as JSON, made from a requirement;
- `scores`: how near a flow is to the one that was expected, in the block model and as a document;
- `programs`: workflow programs, run step by step with tools or a language model, and improved by reward.
"""
