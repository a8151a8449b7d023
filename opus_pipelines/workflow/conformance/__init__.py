"""How far cases conform to a model of the process: its accepting net, alignments, token replay and their measures."""
