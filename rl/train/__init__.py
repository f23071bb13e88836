"""A training run: rollouts, tools, reward and training overlap, and nothing that was admitted is lost.

`parts` says what runs where: engines sample, workers play episodes, a trainer takes steps; each is a plain class that runs in
this process or as a Ray actor. `buffer` is the durable memory, `capacity` the rules by which tasks are admitted and
attempts grow too old, `loop` moves data between them and decides nothing, `run` is the folder.
"""
