"""Processes of one run: how they share, and that together they do what one does."""

import subprocess
import sys
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from threading import Barrier, Thread

import pytest
import torch
from torch import nn

from celstack.errors import CelstackError
from celstack.model.objective import Loss
from celstack.training.distributed.batch_norm import SharedBatchNorm, convert_batch_norm
from celstack.training.distributed.engine import Engine
from celstack.training.distributed.launcher import child_environment
from celstack.training.distributed.process_group import ProcessGroup

CPU = torch.device("cpu")
TOGETHER = Path(__file__).with_name("together.py")


class Threads(ProcessGroup):
    """Threads that behave as processes would, to be tested in no time."""

    def __init__(self, rank, count, barrier, board):
        super().__init__(CPU, rank, count)
        self.barrier, self.board = barrier, board

    def all_gather(self, values):
        self.board[self.rank] = values.clone()
        self.barrier.wait(10)
        found = torch.stack([self.board[rank] for rank in range(self.world_size)])
        self.barrier.wait(10)
        return found

    def all_reduce_sum(self, values):
        return self.all_gather(values.flatten()).sum(0).view_as(values)


def in_threads(count, work):
    """Let so many processes do something, and return what each returns."""
    barrier, board, results = Barrier(count), {}, {}

    def run(rank):
        results[rank] = work(Threads(rank, count, barrier, board))

    threads = [Thread(target=run, args=[rank]) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return [results[rank] for rank in range(count)]


@pytest.mark.parametrize("images", [4, 5, 6, 7, 33, 128])
def test_shares_follow_one_another_and_leave_nothing_out(images):
    shares = [
        range(images)[ProcessGroup(CPU, rank, 2).local_slice(images)] for rank in range(2)
    ]

    assert [index for share in shares for index in share] == list(range(images))
    assert min(map(len, shares)) >= 2


@pytest.mark.parametrize("images", [1, 2, 3])
def test_a_batch_with_less_than_two_images_for_each_is_everybodys(images):
    for rank in range(2):
        group = ProcessGroup(CPU, rank, 2)
        group.begin_batch(images)

        assert range(images)[group.local_slice(images)] == range(images)
        assert not group.is_sharded
        assert group.local_weight == 0.5


def test_weights_add_up_to_one():
    weights = []
    for rank in range(3):
        group = ProcessGroup(CPU, rank, 3)
        group.begin_batch(7)
        weights.append(group.local_weight)

    assert weights == [2 / 7, 2 / 7, 3 / 7]


def test_one_process_is_never_divided():
    alone = ProcessGroup(CPU)
    alone.begin_batch(100)

    assert not alone.is_sharded
    assert alone.local_weight == 1.0
    assert alone.broadcast_bytes(b"so") == b"so"


def test_what_is_gathered_is_in_the_order_of_the_batch():
    numbers, names = torch.arange(7), torch.rand(7, 2, 3)

    def work(group):
        group.begin_batch(7)
        own = group.local_slice(7)
        return group.gather_batch([numbers[own], names[own]])

    for found in in_threads(3, work):
        assert torch.equal(found[0], numbers)
        assert torch.equal(found[1], names)


def test_means_over_what_is_counted_add_up_to_the_mean_of_all():
    values = torch.arange(5.0)
    where = torch.tensor([False, False, True, True, True])

    def work(group):
        group.begin_batch(5)
        own = group.local_slice(5)
        mean = (values * where)[own].sum() / group.mean_denominator(where[own])
        return group.all_reduce_sum(mean * group.local_weight)

    for mean in in_threads(2, work):
        torch.testing.assert_close(mean, torch.tensor(3.0))


def test_gradients_are_added_and_stay_absent_where_nobody_has_one():
    def work(group):
        group.begin_batch(4)
        weights = [nn.Parameter(torch.zeros(2)) for _ in range(3)]
        optimizer = torch.optim.SGD(weights, lr=1.0)
        engine = Engine(group)
        own = weights[0].sum() * (group.rank + 1)
        if group.rank:
            own = own + weights[1].sum()
        loss = engine.scale_loss(Loss(own, torch.tensor(0.0)))
        engine.backward_step(loss.total, optimizer)
        return weights, engine.reduce_loss(loss)

    for weights, _ in in_threads(2, work):
        assert weights[0].tolist() == [-1.5, -1.5]
        assert weights[1].tolist() == [-0.5, -0.5]
        assert weights[2].grad is None


def norms(momentum):
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(3, momentum=momentum)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    return nn.Sequential(norm).double()


@pytest.mark.parametrize("images", [7, 3], ids=["divided", "whole"])
@pytest.mark.parametrize("momentum", [0.1, None])
def test_a_shared_norm_is_that_of_the_whole_batch(images, momentum):
    values = torch.randn(images, 3, 4, 5, dtype=torch.float64) * 2 + 100
    slope = torch.randn_like(values)
    # Made here, because threads would draw on one random state in turns.
    whole, fresh = norms(momentum), norms(momentum)
    expected = values.clone().requires_grad_()
    normal = whole(expected)
    normal.backward(slope)

    def work(group):
        model = deepcopy(fresh)
        convert_batch_norm(model, group)
        assert isinstance(model[0], SharedBatchNorm)
        group.begin_batch(images)
        own = group.local_slice(images)
        inputs = values[own].clone().requires_grad_()
        shown = model(inputs)
        shown.backward(slope[own])
        gradients = group.all_reduce_sum(
            torch.stack([model[0].weight.grad, model[0].bias.grad])
        )
        if not group.is_sharded:
            gradients = gradients / group.world_size
        return model, shown, inputs.grad, gradients, own

    for model, shown, gradient, gradients, own in in_threads(2, work):
        torch.testing.assert_close(shown, normal[own])
        torch.testing.assert_close(gradient, expected.grad[own])
        torch.testing.assert_close(gradients[0], whole[0].weight.grad)
        torch.testing.assert_close(gradients[1], whole[0].bias.grad)
        torch.testing.assert_close(model.state_dict(), whole.state_dict())


def test_a_shared_norm_at_rest_is_a_plain_one():
    plain, values = norms(0.1).eval(), torch.randn(4, 3, 2, 2, dtype=torch.float64)

    def work(group):
        model = deepcopy(plain)
        convert_batch_norm(model, group)
        group.begin_batch(4)
        return model(values[group.local_slice(4)])

    shown = torch.cat(in_threads(2, work))

    assert torch.equal(shown, plain(values))


def test_the_first_ones_complaint_is_everybodys(tmp_path):
    code = """
import sys, torch
from celstack.errors import CelstackError
from celstack.training.distributed.setup import init_process_group
group = init_process_group("cpu", timeout=30)
said = group.broadcast_object({"a": torch.ones(2), "b": 3} if group.is_main else {})
assert said["b"] == 3 and said["a"].tolist() == [1, 1]
try:
    with group.raise_on_all_ranks():
        if group.is_main:
            raise CelstackError("no")
except CelstackError as error:
    sys.exit(40 + (str(error) == "no"))
"""

    assert start(2, "-c", code) == [41, 41]


def start(count, *command):
    """Start processes as torchrun does, and return their exit codes."""
    environment = {**child_environment(count), "OMP_NUM_THREADS": "1"}
    children = [
        subprocess.Popen(
            [sys.executable, *command, *([f"{rank}"] if command[0] != "-c" else [])],
            env={**environment, "RANK": f"{rank}", "LOCAL_RANK": f"{rank}"},
        )
        for rank in range(count)
    ]
    try:
        return [child.wait(300) for child in children]
    finally:
        for child in children:
            child.kill()


@pytest.mark.parametrize(("scenario", "count"), [("predicted", 2), ("taught", 3)])
def test_several_processes_learn_what_one_does(tmp_path, scenario, count):
    assert start(1, str(TOGETHER), scenario, str(tmp_path / "one")) == [0]

    assert start(count, str(TOGETHER), scenario, str(tmp_path / "each")) == [0] * count

    one, *each = (
        torch.load(tmp_path / name, weights_only=True)
        for name in ["one0", *(f"each{rank}" for rank in range(count))]
    )
    first = each[0]
    assert one["again"] == first["again"] != []
    assert one["images"] == first["images"]
    assert all(map(torch.equal, one["usage"], first["usage"]))
    assert first["losses"] == pytest.approx(one["losses"], rel=1e-9)
    torch.testing.assert_close(first["model"], one["model"], rtol=0, atol=1e-8)
    assert first["scores"] == pytest.approx(one["scores"], rel=1e-9)
    for former, latter in pairwise(each):
        assert former["scores"] == latter["scores"]
        assert all(torch.equal(former["model"][k], latter["model"][k]) for k in one["model"])


def test_what_observers_of_the_first_process_decide_holds_for_all(tmp_path):
    assert start(1, str(TOGETHER), "steered", str(tmp_path / "one")) == [0]

    assert start(2, str(TOGETHER), "steered", str(tmp_path / "each")) == [0, 0]

    one, first, second = (
        torch.load(tmp_path / name, weights_only=True) for name in ("one0", "each0", "each1")
    )
    assert one["ended"] == first["ended"] == second["ended"] == "enough"
    assert len(one["losses"]) == len(first["losses"]) == 8
    torch.testing.assert_close(first["model"], one["model"], rtol=0, atol=1e-8)
    assert all(torch.equal(first["model"][k], second["model"][k]) for k in one["model"])


def test_a_part_that_needs_processes_it_has_not_got_is_refused(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setattr(
        "celstack.training.distributed.setup.find_device", lambda _: torch.device("mps")
    )
    from celstack.training.distributed.setup import init_process_group

    with pytest.raises(CelstackError, match="--device mps: supports one process only"):
        init_process_group("mps")
