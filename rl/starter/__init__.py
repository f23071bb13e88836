"""The starter policy: a small Llama that is competent but not good, so that reinforcement has something to improve.

`tokenizer` gives every entity of the covered part one token; `data` turns oracle scripts over counterfactual worlds into
episodes; `sft` imitates them; `evaluate` measures sampled pass@1; `build` is the whole recipe (`touchstone policy build`).
"""
