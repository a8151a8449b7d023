"""What a client's export looks like, and the source.toml that follows from it: behind `opus init` and `opus check`. No Spark."""
