"""The faces of a workflow: how it is written for another program or a person, and read back. Nothing is judged or computed here."""
