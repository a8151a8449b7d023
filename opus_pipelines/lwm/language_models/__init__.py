"""Language models as backends of the Large Work Model: prompts, decoding within the catalogue, answers and their cost.

In: an `LwmRequest`, or a question in words. Out: task sequences beside those of history, or an answer in words. Doors:
`backends.CausalLmBackend`, `backends.OpenaiCompatibleBackend` and `text_answers.KeptText`.
"""
