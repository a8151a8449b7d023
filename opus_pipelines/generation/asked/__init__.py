"""What an intake asks for: its Intentions, the demands of its documents, and the kinds of work that they are about."""
