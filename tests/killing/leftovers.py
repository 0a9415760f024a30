"""What finished runs and caches leave, to be compared bit for bit."""

import hashlib
import json

import torch

VARYING = {"checkpoint.pt", "log.jsonl", "report.html", "environment.json", ".lock"}
"""Files with times in them, or that depend on who runs them: compared by what they mean."""


def left_by_run(folder):
    """Return all that a finished run has learned, logged and written."""
    state = torch.load(folder / "checkpoint.pt", weights_only=True)
    # The length of the log depends on times, which are written in it.
    state.pop("log")
    lines = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    log = [{key: line[key] for key in line if key != "time"} for line in lines]
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in VARYING
    }
    left = {"checkpoint": state, "log": log, "files": files}
    if (folder / "report.html").exists():
        left["page"] = page_of(folder)
    return left


def page_of(folder):
    """Return what the page of a run says about its state, and whether it is whole."""
    text = (folder / "report.html").read_text("utf-8")
    whole = text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>")
    return {
        "whole": whole,
        "refreshes": 'http-equiv="refresh"' in text,
        "status": 'role="status">' in text and 'class="state"' in text,
    }


def left_in_cache(folder):
    """Return the checksums of all that is in a cache; locks say nothing."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in paths
    }


def difference(one, other, place=""):
    """Name the first place at which two nests of tensors and values differ; empty if none."""
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return f"{place}: {sorted(map(str, one.keys() ^ other.keys()))}"
        inner = ((one[key], other[key], f"{place}.{key}") for key in one)
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if len(one) != len(other):
            return f"{place}: {len(one)} and {len(other)} items"
        pairs = zip(one, other, strict=True)
        inner = ((a, b, f"{place}[{n}]") for n, (a, b) in enumerate(pairs))
    elif torch.is_tensor(one) and torch.is_tensor(other):
        return "" if torch.equal(one, other) else place
    else:
        return "" if one == other else place
    return next((found for item in inner if (found := difference(*item))), "")
