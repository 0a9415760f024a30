"""Run folders: what is written into them, and how they are read, opened and compared.

Uses recipes and evaluation. Reading a finished run does not import torch.
"""
