"""Many intakes: read, encoded and worked on by processes that may be killed, side by side, with the rows of one after the other.

    intake folders ─► chunks ─► read (killable) ─► passages ─► encoded once each ─► work (killable) ─► rows ─► part files
"""
