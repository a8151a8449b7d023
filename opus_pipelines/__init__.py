"""Opus Pipelines: from a company's history of work to ranked workflows. docs/architecture.md shows the packages."""
