"""Wiring: the Prefect flows and the `touchstone` command. No decision is made here."""
