"""The records: one frozen class per concept, and the declared Arrow schema each is stored under.

Nothing here reads, writes, asks a model or decides. Every other package speaks in these types.
"""
