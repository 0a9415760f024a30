"""Nothing from a run, a dataset or a download is ever executed: read off the sources."""

import ast
from pathlib import Path

import pytest

import celstack
import celstack_kit

FILES = [f for p in (celstack, celstack_kit) for f in Path(p.__file__).parent.rglob("*.py")]
FORBIDDEN = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml"}
FORBIDDEN |= {"scipy.io", "pandas", "h5py", "dbm"}
"""Modules that execute what they read, or crash on it."""
EXCUSED = {
    ("runs/checkpoint.py", "pickle"): "the name of an exception, nothing else",
    ("testing/datasets.py", "pickle"): "a copy of its own bytes, made the moment before",
}
PROGRAMS = {
    "clevr/workers.py": "starts this very interpreter on a module of the kit",
    "distributed/launcher.py": "starts this very interpreter on each process of a run",
    "testing/javascript.py": "runs the browser code of a transform that its author checks",
    "sweep/local.py": "starts this very interpreter on one run of a sweep",
}
EVALUATED = {
    "registry/static_signature.py": "annotations of installed plugins, no names but its own"
}


def name_of(path):
    return f"{path.parent.name}/{path.name}"


def trees():
    return [(name_of(path), ast.parse(path.read_text(encoding="utf-8"))) for path in FILES]


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def calls(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def option(call, name):
    given = {word.arg: ast.unparse(word.value) for word in call.keywords}
    return given.get(name)


@pytest.mark.parametrize(("name", "tree"), trees(), ids=[name_of(path) for path in FILES])
class TestEverySource:
    def test_imports_nothing_that_unpickles(self, name, tree):
        odd = {
            module
            for module in imported(tree)
            for banned in FORBIDDEN
            if (module == banned or module.startswith(f"{banned}."))
            and (name, banned) not in EXCUSED
        }

        assert odd == set()

    def test_loads_weights_and_nothing_else_with_torch(self, name, tree):
        loads = [call for called, call in calls(tree) if called == "torch.load"]

        assert all(option(call, "weights_only") == "True" for call in loads)

    def test_loads_arrays_without_objects(self, name, tree):
        loads = [call for called, call in calls(tree) if called in ("np.load", "numpy.load")]
        readers = [called for called, _ in calls(tree) if called.endswith(".read_array")]

        assert all(option(call, "allow_pickle") == "False" for call in loads)
        assert readers == []

    def test_executes_no_text(self, name, tree):
        executed = {called for called, _ in calls(tree)} & {
            "eval",
            "exec",
            "compile",
            "__import__",
        }

        assert executed == set() or name in EVALUATED

    def test_starts_no_program(self, name, tree):
        started = [
            c for c, _ in calls(tree) if c.startswith(("subprocess.", "os.system", "os.popen"))
        ]

        assert started == [] or name in PROGRAMS

    def test_opens_images_of_named_kinds_alone(self, name, tree):
        opened = [call for called, call in calls(tree) if called == "Image.open"]

        assert all(option(call, "formats") is not None for call in opened)

    def test_unpacks_archives_in_one_place(self, name, tree):
        unpacked = [
            c
            for c, _ in calls(tree)
            if c.endswith((".extractall", ".unpack_archive", ".extract"))
        ]

        assert unpacked == []


def test_a_word_in_a_recipe_only_ever_names_a_plugin_that_is_installed():
    """The catalog looks names up among entry points, and imports what these say."""
    importing = {name for name, tree in trees() for c, _ in calls(tree) if c == "import_module"}

    # All of these import Celstack's own modules: commands, interfaces, public names of core and
    # kit, and the class that recipes are of.
    core = {
        "celstack/lazy_exports",
        "celstack_kit/__init__",
        "cli/__init__",
        "registry/kinds",
        "recipe/resolve",
    }
    assert importing == {f"{name}.py" for name in core}


@pytest.mark.parametrize(
    "use",
    ["os.system", "celstack_kit.datasets.svhn", "../plugin", "builtins:eval", "a/b", "\0"],
)
def test_a_name_that_is_a_path_or_a_module_is_no_plugin(use):
    from celstack.errors import CelstackError
    from celstack.registry.catalog import Catalog

    with pytest.raises(CelstackError, match="no dataset is called"):
        Catalog().find("dataset", use)
