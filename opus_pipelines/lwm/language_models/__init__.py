"""Language models as backends of the Large Work Model: prompts, decoding within the catalogue, answers and their cost.

In: an `LwmRequest`. Out: task sequences beside those of history. Doors: `causal_lm.CausalLmBackend` and
`endpoint.OpenaiCompatibleBackend`.
"""
