"""The tools of a world, opened for as long as a block runs: our own served in processes of their own, a user's beside them."""
