"""Asking the C library to keep memory is harmless, whatever the C library is."""

import ctypes
import sys

import torch

from celstack.system import tune_allocator


def test_asking_changes_nothing_that_can_be_seen():
    tune_allocator()

    assert torch.ones(1000, 1000).sum() == 1_000_000


def test_another_system_is_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", None)

    tune_allocator()


def test_another_c_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())

    tune_allocator()
