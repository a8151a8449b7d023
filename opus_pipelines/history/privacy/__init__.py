"""What must not reach the lake: named attributes, private text, forgotten clients."""
