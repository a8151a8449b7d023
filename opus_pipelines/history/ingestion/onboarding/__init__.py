"""Proposes settings for a client's export and tries them. Door: `propose.propose_settings`."""
