"""An engine in this process: real sampling by a real model, without a server."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import LlamaForCausalLM

from infra.client import Completion
from rl.learn.records import Weights


@dataclass(frozen=True)
class _Request:
    prompt: tuple[int, ...]
    ends: tuple[int, ...]
    max_tokens: int
    reply: "asyncio.Future[Completion]"


class TorchEngine:
    """An `Engine`. What is asked for at the same time is sampled together, in a thread; seeds are ignored.

    Invariants: one batch at a time, whole by one version; a swap waits for the batch that runs, and what is asked for meanwhile
    waits for the swap.
    """

    def __init__(self, folder: Path, temperature: float = 1.0) -> None:
        self._model: LlamaForCausalLM = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self._temperature = temperature
        self.version = 0
        self.batches: list[int] = []
        """Turns of each batch so far."""
        self._waiting: list[_Request] = []
        self._gate = asyncio.Lock()
        self._running: set[asyncio.Task[None]] = set()

    async def sample(self, prompt: Sequence[int], *, ends: Sequence[int], max_tokens: int, seed: int) -> Completion:
        request = _Request(tuple(prompt), tuple(ends), max_tokens, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        if len(self._waiting) == 1:
            task = asyncio.ensure_future(self._next_batch())
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return await request.reply

    async def swap(self, weights: Weights) -> None:
        async with self._gate:
            state = await asyncio.to_thread(load_file, Path(weights.folder) / "model.safetensors")
            self._model.load_state_dict(state)
            self.version = weights.version

    async def close(self) -> None:
        for task in list(self._running):
            task.cancel()

    async def _next_batch(self) -> None:
        """Takes whatever waits once the batch before is over."""
        async with self._gate:
            await asyncio.sleep(0)  # whoever got an answer with the last batch may ask for more
            batch, self._waiting = [r for r in self._waiting if not r.reply.done()], []
            if not batch:
                return
            self.batches.append(len(batch))
            try:
                replies = await asyncio.to_thread(self._sample, batch)
            except Exception as error:
                for request in batch:
                    if not request.reply.done():
                        request.reply.set_exception(error)
                return
            for request, reply in zip(batch, replies, strict=True):
                if not request.reply.done():
                    request.reply.set_result(reply)

    @torch.inference_mode()
    def _sample(self, batch: Sequence[_Request]) -> list[Completion]:
        """Prompts are padded on the left; a turn that has ended is carried along until all have."""
        longest = max(len(request.prompt) for request in batch)
        ids = torch.zeros(len(batch), longest, dtype=torch.long)
        seen = torch.zeros(len(batch), longest, dtype=torch.long)
        for i, request in enumerate(batch):
            ids[i, longest - len(request.prompt) :] = torch.tensor(request.prompt)
            seen[i, longest - len(request.prompt) :] = 1
        turns: list[tuple[list[int], list[float]]] = [([], []) for _ in batch]
        over = [False] * len(batch)
        cache = None
        while not all(over):
            positions = (seen.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            out = self._model(
                input_ids=ids, attention_mask=seen, position_ids=positions, past_key_values=cache, use_cache=True
            )
            cache = out.past_key_values
            logprobs = (out.logits[:, -1].float() / self._temperature).log_softmax(-1)
            ids = torch.multinomial(logprobs.exp(), 1)
            seen = torch.cat([seen, torch.ones(len(batch), 1, dtype=torch.long)], 1)
            for i, (id, logprob) in enumerate(
                zip(ids[:, 0].tolist(), logprobs.gather(1, ids)[:, 0].tolist(), strict=True)
            ):
                if not over[i]:
                    turns[i][0].append(id)
                    turns[i][1].append(logprob)
                    over[i] = id in batch[i].ends or len(turns[i][0]) == batch[i].max_tokens
        return [
            Completion(
                text="",
                token_ids=tuple(written),
                logprobs=tuple(logprobs_T),
                prompt_tokens=len(request.prompt),
                completion_tokens=len(written),
                finish="stop" if written[-1] in request.ends else "length",
                call_id="",
                version=str(self.version),
            )
            for request, (written, logprobs_T) in zip(batch, turns, strict=True)
        ]
