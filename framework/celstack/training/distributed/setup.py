"""Joining: from a process that was started for a run to one of the processes of the run."""

from __future__ import annotations

import atexit
import os
from datetime import timedelta

import torch

from celstack.errors import CelstackError
from celstack.system import find_device
from celstack.training.distributed.launcher import TIMEOUT, launched
from celstack.training.distributed.liveness import Peers
from celstack.training.distributed.process_group import Processes

TO_START = timedelta(minutes=30)
"""How long processes wait for each other before they begin."""

_joined: list[Processes] = []


def join(device: str, timeout: float | None = None) -> Processes:
    """Join the processes that were started for this run; without any, be alone.

    They wait for each other no longer than ``timeout`` seconds (120), once all are there.
    """
    if not launched():
        return Processes(find_device(device))
    if not _joined:
        _joined.append(_join(device, timedelta(seconds=timeout or TIMEOUT)))
    return _joined[0]


def _join(name: str, timeout: timedelta) -> Processes:
    import logging

    from lightning_fabric import Fabric
    from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment
    from lightning_fabric.strategies.ddp import DDPStrategy
    from torch import distributed

    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    here, count = (int(os.environ[key]) for key in ("LOCAL_WORLD_SIZE", "WORLD_SIZE"))
    kind = find_device(name).type
    if kind == "cuda" and here > torch.cuda.device_count():
        text = f"{here} processes need a device each, and have {torch.cuda.device_count()}"
        raise CelstackError(f"--device {name}: {text}; --device cpu works with any number")
    if kind not in ("cpu", "cuda"):
        raise CelstackError(f"--device {name}: is for one process; --device cpu is for many")
    start = DDPStrategy(cluster_environment=TorchElasticEnvironment(), timeout=TO_START)
    fabric = Fabric(accelerator=kind, devices=here, num_nodes=count // here, strategy=start)
    fabric.launch()
    group = distributed.new_group(timeout=timeout)
    assert isinstance(group, distributed.ProcessGroup)  # all are members
    # Threads that still carry messages when Python ends would take the process down with them.
    atexit.register(distributed.destroy_process_group)
    joined = Processes(fabric.device, fabric.global_rank, count, group)
    mine = torch.tensor(Peers.introduce(), device=fabric.device)
    joined.peers = Peers(joined.rank, joined.stack(mine).tolist())
    return joined
