"""Turns the bytes of a document into its text, LWM (3), with one module for each format. Door: `read.preprocess`."""
