"""Weights over the network, for servers that share no folder with the trainer.

Invariants: what is offered is a copy, which later steps do not change; each taker gets all of it by a group of two, the
trainer and itself, which lasts for one transfer; the offer lasts until it is closed, so that a server that is started again
takes from it again. Tensors that lie on a GPU go by NCCL, others by gloo; the code is the same, and gloo is what is tested.
"""

import contextlib
import json
import socket
import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore, Store, TCPStore  # type: ignore[attr-defined]

_SCHEME = "tcp://"
_TIMEOUT = timedelta(seconds=120)
_POLL_S = 0.02


class Offer:
    """Tensors that can be taken at `address` by any number of takers, one after the other."""

    def __init__(self, tensors: Mapping[str, torch.Tensor], host: str) -> None:
        """`host` is an address of this machine that takers reach."""
        self._tensors = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
        bound = socket.create_server((host, 0))  # torch itself would listen at every address of the machine
        port = bound.getsockname()[1]
        self.address = f"{_SCHEME}{host}:{port}"
        self._store = TCPStore(
            host, port, is_master=True, wait_for_workers=False, timeout=_TIMEOUT, master_listen_fd=bound.detach()
        )
        self._store.set("tensors", json.dumps([_described(name, tensor) for name, tensor in self._tensors.items()]))
        self._over = threading.Event()
        threading.Thread(target=self._give, daemon=True).start()

    def close(self) -> None:
        """Offer it to nobody else. A transfer that runs ends in its own time."""
        self._over.set()

    def _give(self) -> None:
        given = 0
        while not self._over.wait(_POLL_S):
            if self._store.add("takers", 0) > given:
                with contextlib.suppress(RuntimeError):  # a taker that died; it will come again
                    _transfer(self._store, given, 0, list(self._tensors.values()))
                given += 1


def _described(name: str, tensor: torch.Tensor) -> tuple[str, str, list[int], str]:
    return name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape), tensor.device.type


def is_offered(source: str) -> bool:
    """Whether this is the address of an offer, and no folder."""
    return source.startswith(_SCHEME)


def take(address: str) -> dict[str, torch.Tensor]:
    """What is offered at the address, on the kind of device that it is offered from. Raises what torch raises."""
    parts = urlsplit(address)
    store = TCPStore(str(parts.hostname), parts.port or 0, is_master=False, timeout=_TIMEOUT)
    tensors = {
        name: torch.empty(shape, dtype=getattr(torch, dtype), device=device)
        for name, dtype, shape, device in json.loads(store.get("tensors"))
    }
    _transfer(store, store.add("takers", 1) - 1, 1, list(tensors.values()))
    return tensors


def _transfer(store: Store, number: int, rank: int, tensors: list[torch.Tensor]) -> None:
    own = PrefixStore(f"transfer/{number}", store)
    device = tensors[0].device
    group: Any
    if device.type == "cuda":
        group = dist.ProcessGroupNCCL(own, rank, 2, dist.ProcessGroupNCCL.Options())
    else:
        group = dist.ProcessGroupGloo(own, rank, 2, _TIMEOUT)
    options = dist.BroadcastOptions()
    options.rootRank = 0
    for tensor in tensors:
        group.broadcast([tensor], options).wait()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    group.shutdown()
