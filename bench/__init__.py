"""Benchmarks: `make bench-*`. Each prints a table and one `figure` line for every number that was asked of it."""
