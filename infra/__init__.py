"""Everything that touches a machine: model servers, search index, store, call journal, Prefect and Ray processes.

Nothing here knows what a task is or what is kept.
"""
