"""The agent: its turn formats, context, environment, rollouts, solvers, and the starter policy. Nothing here knows Prefect."""
