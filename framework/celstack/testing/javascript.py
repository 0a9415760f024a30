"""Run JavaScript with node, or a browser without a window, whichever is installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

NODE = ("node", "nodejs")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
TIMEOUT_SECONDS = 60
RESULT = "celstack-result:"
"""What the result begins with among everything else that a program prints."""


def find_javascript() -> str | None:
    """Return the path of node, else of a browser, that can run JavaScript; None without."""
    return next(filter(None, map(shutil.which, (*NODE, *BROWSERS))), None)


def run_javascript(program: str, script: str, data: Any) -> Any:
    """Run a script and return its result.

    Args:
        program: What ``find_javascript`` returned.
        script: The body of a function of ``input``; what it returns is the result.
        data: The value of ``input``, which JSON can express.

    Returns:
        The result; NaN and infinity become None, as JSON has neither.

    Raises:
        RuntimeError: The script raises an error or does not end.
    """
    whole = f"""
      const window = globalThis;
      const input = {json.dumps(data)};
      const run = () => {{ {script} }};
      let told;
      try {{ told = {{ value: run() }}; }}
      catch (error) {{ told = {{ error: String(error) }}; }}
      const result = "{RESULT}" + encodeURIComponent(JSON.stringify(told)) + ";";
    """
    with tempfile.TemporaryDirectory() as folder:
        text = _run(program, whole, Path(folder))
    found = re.search(f"{RESULT}([^;]+);", text)
    if found is None:
        raise RuntimeError(f"{program} gives no result")
    told = json.loads(unquote(found[1]))
    if "error" in told:
        raise RuntimeError(told["error"])
    return told.get("value")


def _run(program: str, script: str, folder: Path) -> str:
    if Path(program).name in NODE:
        file = folder / "script.js"
        file.write_text(f"{{{script} console.log(result);}}", encoding="utf-8")
        command = [program, str(file)]
    else:
        file = folder / "page.html"
        script = script.replace("const window = globalThis;", "").replace("</", "<\\/")
        page = f"<body><script>{{{script} document.body.textContent = result;}}</script></body>"
        file.write_text(f"<!doctype html><meta charset='utf-8'>{page}", encoding="utf-8")
        command = [program, "--headless", "--disable-gpu", f"--user-data-dir={folder}"]
        # Browsers refuse to run as root, as in containers, with their sandbox.
        command += ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
        command += ["--dump-dom", file.as_uri()]
    try:
        done = subprocess.run(  # noqa: S603 - a program of this machine, and a plugin's code
            command, capture_output=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"it does not end within {TIMEOUT_SECONDS} seconds") from None
    return done.stdout.decode(errors="replace")
