"""What history tells of an intake: its near cases, what they needed, in which order, what its procedure reads like."""
