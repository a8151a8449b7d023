"""Keeps trained models in the lake: their weights, what their cards say, and which one serves.

In: weights and a card. Out: `models/<kind>/<model>/`. Doors: `model_store` and `model_files`.
"""
