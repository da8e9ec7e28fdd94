"""Leave-one-out: what a fit would say about each of its rows without that row."""
