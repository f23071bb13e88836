"""The model that learns, on one rank: all of it blocks, and all of it runs on one thread.

On one device compute in bfloat16 is autocast's, which casts the float32 master weights once a pass. With several ranks it
is FSDP's, which also gathers the weights as bfloat16 and so moves half the bytes; gradients are summed in float32 either way.
Nothing here is random: dropout is off, since the engine that samples has none, so there is no random state to keep.
"""

import math
import os
import time
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from safetensors.torch import load_file
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel
from transformers.core_model_loading import revert_weight_conversion
from transformers.utils.logging import disable_progress_bar

from infra.broadcast import Offer
from infra.place import own_address
from infra.weights import digest
from rl.learn.checkpoint import (
    OPTIMISER_FILE,
    TrainerError,
    keep_two,
    read_manifest,
    whole_folder,
    write_manifest,
    write_model,
    write_tensors,
)
from rl.learn.loss import Measures, finish, nothing, pg_loss, token_logprobs
from rl.learn.packing import ATTENTION, Packed, inputs, lay, pack
from rl.learn.ranks import spread
from rl.learn.records import Batch, Row, Weights
from schemas.training import LossOptions, OptimiserOptions

_NO_TARGET = np.zeros(1)
BLANK = lay([Row("", _NO_TARGET, _NO_TARGET > 0, _NO_TARGET, _NO_TARGET, _NO_TARGET, share=0.0)])
"""What a rank passes through the model when it has no rows left and others have."""


@dataclass(frozen=True, slots=True)
class TrainerSetup:
    """What a rank is started with, wherever it runs."""

    policy: str
    """A model folder: where learning begins, and the tokenizer of everything that is written."""
    weights: str
    """The folder of published versions, in memory if it can be; no other trainer writes there."""
    optimiser: OptimiserOptions
    loss: LossOptions
    temperature: float
    """Of sampling: the policy is softmax(logits / temperature)."""
    rank: int = 0
    world: int = 1
    meet: str | None = None
    """Where ranks find each other, as `file:///run/meeting` (a file that is not there yet) or `tcp://host:port`; only with
    several of them."""
    offers: bool = False
    """Weights are offered over the network, and no file of them is written."""
    patience_s: float = 600.0
    """A rank that waits for another so long gives up."""


class Learner:
    """One rank's share of the model and its optimiser. Raises `TrainerError`."""

    def __init__(self, setup: TrainerSetup, compute: torch.dtype | None = None) -> None:
        """`compute` is bfloat16 on CUDA and float32 on CPU unless it is said."""
        self._setup = setup
        self._device = _device(setup)
        self._compute = compute or (torch.bfloat16 if self._device.type == "cuda" else torch.float32)
        self.model = self._sharded(_read(setup.policy))
        self.model.train(False)
        parameters = list(self.model.parameters())
        options = setup.optimiser
        self.optimiser = torch.optim.AdamW(
            [
                {"params": [p for p in parameters if p.ndim > 1], "weight_decay": options.weight_decay},
                {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
            ],
            betas=(options.beta1, options.beta2),
            fused=True,
        )
        self.version = self._updates = 0
        self._offers: list[Offer] = []

    def step(self, batch: Batch) -> dict[str, float]:
        """A step whose loss or gradient is not finite is skipped: a NaN never reaches the weights."""
        begun, options = time.perf_counter(), self._setup.optimiser
        parts = [
            pack(rows, options.pack) for rows in spread([r for r in batch.rows if r.targets.any()], self._setup.world)
        ]
        passes, mine = max(map(len, parts)), parts[self._setup.rank]
        measures, norm, finite, rate = nothing(self._device), 0.0, True, self._rate()
        if passes:
            try:
                for packed in mine + [BLANK] * (passes - len(mine)):
                    measures += self._accumulate(packed)
                measures = self._over_ranks(measures)
                norm = float(_whole(torch.nn.utils.clip_grad_norm_(self.model.parameters(), options.clip)))
                finite = math.isfinite(norm) and bool(measures.sums.isfinite().all())
                if finite:
                    self._update()
            finally:
                self.optimiser.zero_grad()
        self.version += 1
        seconds = time.perf_counter() - begun
        tokens = sum(len(packed) for part in parts for packed in part)
        return finish(measures) | {
            "gradient_norm/step": norm,
            "rate/step": rate,
            "skipped_steps/step": float(not finite),
            "passes/step": float(passes),
            "tokens/step": float(tokens),
            "tokens_per_second/step": tokens / seconds,
            "seconds/step": seconds,
        }

    def publish(self, version: int) -> Weights:
        """Gather the weights, in the type that is computed in, and write or offer them as this version; the last two stay."""
        tensors = self._tensors(self._compute, self._device if self._setup.offers else "cpu")
        place = sha256 = ""
        if self._setup.rank == 0:
            sha256 = digest(tensors)
            place = self._offered(tensors) if self._setup.offers else self._written(tensors, version)
        self.version = version
        return Weights(self._as_rank_0(place), version, self._as_rank_0(sha256))

    def _written(self, tensors: dict[str, torch.Tensor], version: int) -> str:
        parent = Path(self._setup.weights)
        with whole_folder(parent / f"v{version}") as partial:
            write_model(partial, Path(self._setup.policy), tensors)
        keep_two(parent, version)
        return str(parent / f"v{version}")

    def _offered(self, tensors: dict[str, torch.Tensor]) -> str:
        self._offers.append(Offer(tensors, own_address()))
        while len(self._offers) > 2:
            self._offers.pop(0).close()
        return self._offers[-1].address

    def save(self, folder: str) -> None:
        tensors, moments = self._tensors(torch.float32), self._moments()
        if self._setup.rank == 0:
            with whole_folder(Path(folder)) as partial:
                write_model(partial, Path(self._setup.policy), tensors)
                write_tensors(moments, partial / OPTIMISER_FILE)
                write_manifest(partial, self.version, self._updates)
        self._as_rank_0(None)

    def load(self, folder: str) -> None:
        manifest = read_manifest(Path(folder))
        read = dict(_read(folder).named_parameters())
        for name, parameter in self.model.named_parameters():
            shape = tuple(read[name].shape) if name in read else None
            if shape != tuple(parameter.shape):
                raise TrainerError(
                    f"{folder}: holds another model ({name} is {shape}, here {tuple(parameter.shape)}); "
                    f"go on with the policy it began from"
                )
        moments = load_file(Path(folder) / OPTIMISER_FILE)
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(_like(parameter, read[name].detach()))
                if f"{name}.step" in moments:
                    self.optimiser.state[parameter] = {
                        # Whole on every rank: it is a number.
                        "step": moments[f"{name}.step"].to(self._device),
                        **{key: _like(parameter, moments[f"{name}.{key}"]) for key in ("exp_avg", "exp_avg_sq")},
                    }
                else:
                    self.optimiser.state.pop(parameter, None)
        self.version, self._updates = manifest.version, manifest.updates

    def close(self) -> None:
        for offer in self._offers:
            offer.close()
        if self._setup.world > 1:
            dist.destroy_process_group()

    def _accumulate(self, packed: Packed) -> Measures:
        """Add the gradient of one packed sequence. The head runs only where a target is predicted."""

        def here(array: np.ndarray) -> torch.Tensor:
            return torch.from_numpy(array).to(self._device)

        targets = here(packed.targets)
        casts = self._setup.world == 1 and self._compute != torch.float32
        with torch.autocast(self._device.type, self._compute) if casts else nullcontext():
            logits = self.model(**inputs(packed, self._device), logits_to_keep=targets - 1).logits[0]
        logprobs, entropies = token_logprobs(logits, here(packed.ids)[targets], self._setup.temperature)
        loss, measures = pg_loss(
            logprobs,
            entropies,
            behaviour=here(packed.logprobs),
            advantages=here(packed.advantages),
            shares=here(packed.shares),
            fresh=here(packed.versions) == self.version,
            clip=self._setup.loss.clip,
        )
        loss.backward()  # type: ignore[no-untyped-call]
        return measures

    def _update(self) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = self._rate()
        self.optimiser.step()
        self._updates += 1

    def _rate(self) -> float:
        """Of the next update."""
        options = self._setup.optimiser
        return options.rate * min(1.0, (self._updates + 1) / max(1, options.warmup))

    def _sharded(self, model: PreTrainedModel) -> PreTrainedModel:
        setup, device = self._setup, self._device
        if setup.world == 1:
            return model.to(device)  # type: ignore[arg-type, no-any-return]
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            init_method=setup.meet,
            rank=setup.rank,
            world_size=setup.world,
            timeout=timedelta(seconds=setup.patience_s),
        )
        options: dict[str, Any] = {
            "mesh": init_device_mesh(device.type, (setup.world,)),
            "mp_policy": MixedPrecisionPolicy(param_dtype=self._compute, reduce_dtype=torch.float32),
        }
        layers = set(model._no_split_modules or ())
        for module in [each for each in model.modules() if type(each).__name__ in layers]:
            fully_shard(module, **options)
        fully_shard(model, **options)
        for module in model.modules():
            if isinstance(module, FSDPModule):
                # Shares were made from the whole batch: gradients are summed over ranks, where FSDP would take the mean.
                module.set_gradient_divide_factor(1.0)
                module.set_force_sum_reduction_for_comms(True)
        return model

    def _over_ranks(self, measures: Measures) -> Measures:
        if self._setup.world > 1:
            dist.all_reduce(measures.sums)
            dist.all_reduce(measures.most, dist.ReduceOp.MAX)
        return measures

    def _as_rank_0(self, value: str | None) -> str:
        """What rank 0 has; it has done by then what the others rely on."""
        if self._setup.world > 1:
            values = [value]
            dist.broadcast_object_list(values, src=0, device=self._device)
            value = values[0]
        return value or ""

    def _tensors(self, dtype: torch.dtype, device: torch.device | str = "cpu") -> dict[str, torch.Tensor]:
        """Whole weights by the names of the policy's folder, each in memory of its own; on other ranks than 0 none."""
        state = {}
        for name, value in self.model.state_dict().items():
            whole = _whole(value)
            if self._setup.rank == 0:
                state[name] = whole.to(device, dtype, copy=True)
        return dict(revert_weight_conversion(self.model, state)) if state else state

    def _moments(self) -> dict[str, torch.Tensor]:
        """The optimiser's state as `<parameter>.<key>`; on other ranks than 0 none."""
        found = {}
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimiser.state.get(parameter, {}).items():
                whole = _whole(value)
                if self._setup.rank == 0:
                    found[f"{name}.{key}"] = whole.to("cpu", copy=True)
        return found


def threads(setup: TrainerSetup) -> int:
    """CPU threads of a rank. By default ranks share all cores: an engine often waits for the next batch to be trained."""
    return setup.optimiser.threads or max(1, len(os.sched_getaffinity(0)) // setup.world)


def _device(setup: TrainerSetup) -> torch.device:
    if not torch.cuda.is_available():
        torch.set_num_threads(threads(setup))
        return torch.device("cpu")
    device = torch.device("cuda", setup.rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def _read(folder: str) -> PreTrainedModel:
    if not (Path(folder) / "config.json").is_file():
        raise TrainerError(f"{folder}: is no model folder, it has no config.json; name one, or a recipe")
    disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        # A layer that sees a window attends in its own way, to what the mask of packed positions lets it see.
        windowed = getattr(AutoConfig.from_pretrained(folder, local_files_only=True), "sliding_window", None)
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=torch.float32,
            local_files_only=True,
            attn_implementation="sdpa" if windowed else ATTENTION,
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise TrainerError(
            f"{folder}: cannot be trained ({_first_line(error)}); name a causal model's folder"
        ) from error
    return model


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _whole(tensor: torch.Tensor) -> torch.Tensor:
    """All of a tensor; where it is sharded every rank has to ask at once."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _like(parameter: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A whole value, sharded and placed as `parameter` is. Every rank has read the whole of it."""
    value = value.to(parameter.device, copy=True)
    if isinstance(parameter, DTensor):
        return distribute_tensor(value, parameter.device_mesh, parameter.placements, src_data_rank=None)
    return value
