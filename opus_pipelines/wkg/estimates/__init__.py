"""From counts to figures with intervals: quantiles, p and q, what history needs."""
