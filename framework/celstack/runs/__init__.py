"""Run folders: writing, reading, opening and comparing them.

Uses recipes and evaluation. Reading a finished run does not import torch.
"""
