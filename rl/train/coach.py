"""A training run from its folder to its end: evaluate, learn, evaluate again, report. What is done is not done again."""

import asyncio
import hashlib
import os
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]

from infra.engine import EngineOptions
from infra.files import locked, write_whole
from infra.models import LocalModel
from infra.place import LOCAL, Place, place_at
from infra.settings import Settings
from rl.analytics import Ended, failure_stats, samples
from rl.heldout import evaluate_served, of_release
from rl.learn.learner import TrainerSetup
from rl.learn.trainer import TorchTrainer
from rl.train import metrics as figures
from rl.train.buffer import Buffer
from rl.train.checkpoints import Checkpoints
from rl.train.engine import VllmEngine
from rl.train.fleet import Fleet, Recipe
from rl.train.loop import Loop
from rl.train.progress import Progress, Watch, unwatched
from rl.train.report import Account, Fates, page
from rl.train.run import TrainRun
from rl.train.stepper import Stepper
from rl.train.worker import RolloutWorker, WorkerSetup
from schemas.config import Served
from schemas.evaluation import EvaluateConfig, Evaluation

BUFFER, EVALUATIONS = "buffer.sqlite", "evaluations"
MEMORY = Path("/dev/shm")  # noqa: S108 - weights pass through it, under a name that only this run has
