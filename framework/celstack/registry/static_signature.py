"""Read the signature of a constructor from source code, without importing it.

This reports mistakes in recipes before torch is imported. Only plain sources are understood;
for others NotStaticallyReadable is raised, and the class is imported and inspected.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union

from celstack.registry.kinds import KIND_OF_INTERFACE
from celstack.registry.signature import REQUIRED, SETTINGS, Option, Signature


class Bound(NamedTuple):
    """Stand-in for the bounds of annotated-types, which is slow to import."""

    ge: Any = None
    gt: Any = None
    le: Any = None
    lt: Any = None


# Names that annotations may use. Interfaces and settings stand for tables; placeholder
# classes of the same name are enough.
VOCABULARY: dict[str, Any] = {
    "Ge": lambda ge: Bound(ge=ge),
    "Gt": lambda gt: Bound(gt=gt),
    "Le": lambda le: Bound(le=le),
    "Lt": lambda lt: Bound(lt=lt),
    "Interval": Bound,
    **{name: type(name, (), {}) for name in (*KIND_OF_INTERFACE, *SETTINGS)},
    "Annotated": Annotated,
    "Any": Any,
    "Literal": Literal,
    "Optional": Optional,
    "Path": Path,
    "Union": Union,
    **{plain.__name__: plain for plain in (bool, int, float, str, list, tuple, dict)},
}
INTERFACES = {
    *KIND_OF_INTERFACE,
    "CandidateSelector",
    "ConfusionMetric",
    "PerImageMetric",
    "Warp",
}
FACTORIES: dict[str, type[Any]] = {
    "field(factory=list)": list,
    **{f"field(factory={name})": dict for name in ("dict", *SETTINGS)},
}
FIELD_DECORATORS = {"define", "frozen", "mutable", "dataclass", "settings"}


class NotStaticallyReadable(Exception):  # noqa: N818 - never shown to users
    """The signature cannot be read from the source; inspect the class instead."""


def read_plugin(module: str, hook: str, name: str) -> Signature:
    """Read the signature of the class that a plugin's hook provides."""
    tree = _parse(module)
    hooks = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == hook]
    if len(hooks) != 1:
        raise NotStaticallyReadable(f"{module} does not define {hook} once")
    return _signature_of(tree, _provided(hooks[0], name))


def read_class(module: str, name: str) -> Signature:
    """Read the signature of one class of a module."""
    return _signature_of(_parse(module), name)


def _parse(module: str) -> ast.Module:
    try:
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            raise NotStaticallyReadable(f"{module} has no source")
        source = Path(spec.origin)
        return _parse_file(source, source.stat().st_mtime_ns)
    # Finding a module imports its parent packages, which may raise anything; importing the
    # module itself gives the better message.
    except (Exception, SystemExit) as error:
        raise NotStaticallyReadable(str(error)) from error


@cache
def _parse_file(source: Path, changed: int) -> ast.Module:  # noqa: ARG001 - part of the key
    return ast.parse(source.read_bytes())


def _provided(hook: ast.FunctionDef, name: str) -> str:
    last = hook.body[-1]
    if isinstance(last, ast.Return) and isinstance(last.value, ast.Dict):
        for key, value in zip(last.value.keys, last.value.values, strict=True):
            named = isinstance(key, ast.Constant) and key.value == name
            if named and isinstance(value, ast.Name):
                return value.id
    raise NotStaticallyReadable(f"{hook.name} does not return a dict display with '{name}'")


@cache
def _signature_of(tree: ast.Module, name: str) -> Signature:
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name]
    if len(classes) != 1:
        raise NotStaticallyReadable(f"{name} is not defined once")
    node = classes[0]
    doc = ast.get_docstring(node, clean=False) or ""
    inits = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    decorators = {_last_name(decorator) for decorator in node.decorator_list}
    if node.keywords or decorators - FIELD_DECORATORS or len(inits) > 1:
        raise NotStaticallyReadable(f"{name} has unknown decorators or keywords")
    if inits:
        return Signature(tuple(_arguments(inits[0])), doc)
    if not all(isinstance(base, ast.Name) and base.id in INTERFACES for base in node.bases):
        raise NotStaticallyReadable(f"{name} inherits its constructor")
    # The constructors of interfaces take no arguments.
    return Signature(tuple(_fields(node)) if decorators else (), doc)


def _arguments(init: ast.FunctionDef) -> list[Option]:
    arguments = init.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs or init.decorator_list:
        raise NotStaticallyReadable("it has variadic or positional-only arguments")
    positional = arguments.args[1:]
    gap: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults = [*gap, *arguments.defaults, *arguments.kw_defaults]
    both = zip([*positional, *arguments.kwonlyargs], defaults, strict=True)
    return [Option(arg.arg, _annotation(arg.annotation), _default(node)) for arg, node in both]


def _fields(node: ast.ClassDef) -> list[Option]:
    options = []
    for field in node.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            name = field.target.id
            if name.startswith("_"):
                raise NotStaticallyReadable(f"the option of the field {name} has another name")
            options.append(Option(name, _annotation(field.annotation), _default(field.value)))
    return options


def _annotation(node: ast.expr | None) -> Any:
    if node is None:
        return Any
    words = list(ast.walk(node))
    quoted = any(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in words)
    if quoted and not any(isinstance(n, ast.Name) and n.id == "Literal" for n in words):
        raise NotStaticallyReadable("an annotation is a string")
    try:
        # Evaluates names of VOCABULARY only, in a source that the user has installed.
        code = compile(ast.Expression(node), "annotation", "eval")
        return eval(code, {"__builtins__": {}}, VOCABULARY)  # noqa: S307
    except Exception as error:
        raise NotStaticallyReadable(str(error)) from error


def _default(node: ast.expr | None) -> Any:
    if node is None:
        return REQUIRED
    try:
        if isinstance(node, ast.Call):
            return FACTORIES[ast.unparse(node)]()
        return ast.literal_eval(node)
    except Exception as error:
        raise NotStaticallyReadable(str(error)) from error


def _last_name(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
