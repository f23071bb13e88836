"""What is offered over the network arrives whole, by gloo; NCCL takes the same way where there is CUDA."""

import subprocess
import sys

import psutil
import torch

from infra.broadcast import Offer
from infra.weights import digest

TAKER = "import sys; from infra import broadcast, weights; print(weights.digest(broadcast.take(sys.argv[1])))"


def test_every_taker_gets_what_was_offered_whatever_became_of_it_since() -> None:
    tensors = {"head": torch.randn(300, 200), "norm": torch.randn(7).bfloat16(), "count": torch.tensor(3)}
    published = digest(tensors)
    offer = Offer(tensors, "127.0.0.1")
    tensors["head"].zero_()
    for _ in range(2):
        run = [sys.executable, "-c", TAKER, offer.address]
        assert subprocess.run(run, capture_output=True, text=True, timeout=200).stdout.strip() == published
    offer.close()


def test_an_offer_is_heard_at_its_own_address_only() -> None:
    def heard() -> set[tuple[str, int]]:
        listening = [it.laddr for it in psutil.Process().net_connections() if it.status == psutil.CONN_LISTEN]
        return {(it.ip, it.port) for it in listening}

    before = heard()
    offer = Offer({"one": torch.ones(1)}, "127.0.0.1")
    assert heard() - before == {("127.0.0.1", int(offer.address.rpartition(":")[2]))}
    offer.close()
