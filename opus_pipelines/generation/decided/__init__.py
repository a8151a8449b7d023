"""Decisions of people on ranked workflows: how they are kept, what stands for an intake, and how they change its ranking."""
