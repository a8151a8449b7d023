"""From a client's export to settings that were tried. Door: `propose.propose_settings`."""
