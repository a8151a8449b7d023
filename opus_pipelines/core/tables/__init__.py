"""The columns of every dataset, one module for each part of the lake."""
