"""Pages about the runs of strangers: of one run, and of several in comparison."""

import shutil

from fuzzed_runs import RunFiles

from celstack.files import write_atomic
from celstack.report.compare_page import make_comparison
from celstack.report.run_page import make_page
from celstack.runs.open import open_run

PAGE = "page.html"


class Pages(RunFiles):
    """They are made from mutated files, also from mutated pictures, and are whole."""

    def __init__(self, folder):
        super().__init__(folder)
        # A page shows a file that is missing or damaged as such, or is refused in a line.
        paths = [path for path in self.run.rglob("*.png") if path.name != "examples.png"]
        self.files |= {str(path.relative_to(self.run)): path.read_bytes() for path in paths}
        self.opened = open_run(self.run)

    def read(self, random):
        page = self.folder / PAGE
        if random.random() < 0.5:
            # Opening takes most of the time; what it reads is another kind of input.
            made = make_page(self.run, self.opened.assembly, self.opened.decomposer)
            write_atomic(page, made.text)
        else:
            write_atomic(page, make_comparison([self.run, self.other()]))
        text = page.read_text(encoding="utf-8")
        assert text.startswith("<!DOCTYPE html>"), text[:100]
        assert text.rstrip().endswith("</html>"), text[-100:]

    def other(self):
        """Return the same run in another folder, so that there is something to compare."""
        other = self.folder / "other"
        if not other.exists():
            shutil.copytree(self.run, other)
        for name in ("resolved.toml", "metrics.json", "log.jsonl", "evaluation.json"):
            (other / name).write_bytes(self.files[name])
        return other
