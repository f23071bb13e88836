"""What a policy learns from: from graded trajectories to a step of the optimiser.

`reward` and `advantage` are formulas over numbers, `rows` turns trajectories into token rows, `batch` puts the three
together, `packing` lays rows side by side, `loss` is the policy gradient, `trainer` takes the step.
"""
