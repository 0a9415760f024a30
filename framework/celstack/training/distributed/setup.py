"""Initialize the process group of a run with Lightning Fabric.

By hand are only the checks of the device and a second group, whose timeout, unlike that of
the group which Fabric makes, need not cover ranks that start late.
"""

from __future__ import annotations

import atexit
import os
from datetime import timedelta

import torch

from celstack.errors import CelstackError
from celstack.system import find_device
from celstack.training.distributed.launcher import DEFAULT_TIMEOUT_SECONDS, is_distributed
from celstack.training.distributed.liveness import Peers
from celstack.training.distributed.process_group import ProcessGroup

STARTUP_TIMEOUT = timedelta(minutes=30)
"""How long ranks wait for all others to start."""

_initialized: list[ProcessGroup] = []


def init_process_group(device: str, timeout: float | None = None) -> ProcessGroup:
    """Join the processes that torchrun or ``launch`` started; return a group of one otherwise.

    Further calls return the same group.

    Args:
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        timeout: Seconds that collective operations wait for a rank once all have started; 120
            unless given.
    """
    if not is_distributed():
        return ProcessGroup(find_device(device))
    if not _initialized:
        seconds = timeout or DEFAULT_TIMEOUT_SECONDS
        _initialized.append(_init(device, timedelta(seconds=seconds)))
    return _initialized[0]


def _init(name: str, timeout: timedelta) -> ProcessGroup:
    import logging

    from lightning_fabric import Fabric
    from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment
    from lightning_fabric.strategies.ddp import DDPStrategy
    from torch import distributed

    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    local, world_size = (int(os.environ[key]) for key in ("LOCAL_WORLD_SIZE", "WORLD_SIZE"))
    kind = find_device(name).type
    if kind == "cuda" and local > torch.cuda.device_count():
        text = f"{local} processes need one GPU each, but {torch.cuda.device_count()} found"
        raise CelstackError(f"--device {name}: {text}; --device cpu allows any number")
    if kind not in ("cpu", "cuda"):
        text = "supports one process only; use --device cpu for several"
        raise CelstackError(f"--device {name}: {text}")
    strategy = DDPStrategy(
        cluster_environment=TorchElasticEnvironment(), timeout=STARTUP_TIMEOUT
    )
    fabric = Fabric(
        accelerator=kind, devices=local, num_nodes=world_size // local, strategy=strategy
    )
    fabric.launch()
    torch_group = distributed.new_group(timeout=timeout)
    assert isinstance(torch_group, distributed.ProcessGroup)  # every rank is a member
    # gloo's threads crash the process if they are still running when Python exits.
    atexit.register(distributed.destroy_process_group)
    group = ProcessGroup(fabric.device, fabric.global_rank, world_size, torch_group)
    identity = torch.tensor(Peers.identify(), device=fabric.device)
    group.peers = Peers(group.rank, group.all_gather(identity).tolist())
    return group
