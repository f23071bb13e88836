"""The agent: its turn format, environment, rollouts, solvers, and the starter policy. Nothing here knows Prefect."""
