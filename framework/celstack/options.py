"""What a part's constructor takes: the schema of its table in a recipe.

The signature is read from the plugin's source where that is plain enough, so that a
mistake in a recipe is told before torch is imported; otherwise from the class itself.
"""

from __future__ import annotations

import ast
import inspect
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

import annotated_types

from celstack.kinds import KIND_OF_INTERFACE

REQUIRED: Any = inspect.Parameter.empty
SETTINGS = ("Transforms", "Training", "Stage", "Evaluation")
# What an annotation may be made of. Interfaces and settings stand for tables; their names
# are enough here, so that nothing heavy is imported.
VOCABULARY: dict[str, Any] = {
    **{kind: getattr(annotated_types, kind) for kind in ("Ge", "Gt", "Le", "Lt", "Interval")},
    **{name: type(name, (), {}) for name in (*KIND_OF_INTERFACE, *SETTINGS)},
    "Annotated": Annotated,
    "Any": Any,
    "Literal": Literal,
    "Path": Path,
    **{plain.__name__: plain for plain in (bool, int, float, str, list, tuple, dict)},
}
FIELD_DECORATORS = {"define", "frozen", "mutable", "dataclass", "settings"}


class Option(NamedTuple):
    """One keyword argument of a constructor."""

    name: str
    annotation: Any
    default: Any = REQUIRED


class Signature(NamedTuple):
    """A constructor, as recipes see it."""

    options: tuple[Option, ...]
    doc: str

    def names(self) -> list[str]:
        """Name the options."""
        return [option.name for option in self.options]


class TooClever(Exception):  # noqa: N818 - an outcome of reading, never an error of the user's
    """The source does not say plainly what the constructor takes."""


def read_plugin(module: str, hook: str, name: str) -> Signature:
    """Read from the source the signature of the class that a plugin's hook provides."""
    tree = _parse(module)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == hook:
            return _signature_of(tree, _provided(node, name))
    raise TooClever(f"{module} has no function {hook}")


def read_class(module: str, name: str) -> Signature:
    """Read from the source of a module the signature of one of its classes."""
    return _signature_of(_parse(module), name)


def inspect_class(part: type[Any]) -> Signature:
    """Read the signature off a class that is loaded."""
    hints = get_type_hints(part.__init__, include_extras=True)
    parameters = list(inspect.signature(part).parameters.values())
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    options = (Option(p.name, hints.get(p.name, Any), p.default) for p in plain)
    return Signature(tuple(options), inspect.getdoc(part) or "")


def _parse(module: str) -> ast.Module:
    try:
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            raise TooClever(f"{module} has no source")
        return ast.parse(Path(spec.origin).read_bytes())
    # Whatever is wrong with it, importing it will tell better.
    except (ImportError, OSError, SyntaxError, ValueError) as error:
        raise TooClever(str(error)) from error


def _provided(hook: ast.FunctionDef, name: str) -> str:
    last = hook.body[-1]
    if isinstance(last, ast.Return) and isinstance(last.value, ast.Dict):
        for key, value in zip(last.value.keys, last.value.values, strict=True):
            if (
                isinstance(key, ast.Constant)
                and key.value == name
                and isinstance(value, ast.Name)
            ):
                return value.id
    raise TooClever(f"{hook.name} does not plainly return '{name}'")


def _signature_of(tree: ast.Module, name: str) -> Signature:
    classes = [
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name
    ]
    if len(classes) != 1:
        raise TooClever(f"{name} is not defined here, or twice")
    node = classes[0]
    doc = inspect.cleandoc(ast.get_docstring(node) or "")
    inits = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    if inits:
        return Signature(tuple(_arguments(inits[0].args)), doc)
    if FIELD_DECORATORS & {_last_name(decorator) for decorator in node.decorator_list}:
        return Signature(tuple(_fields(node)), doc)
    interfaces = {*KIND_OF_INTERFACE, "Warp"}
    if all(isinstance(base, ast.Name) and base.id in interfaces for base in node.bases):
        return Signature((), doc)  # an interface's own constructor takes nothing
    raise TooClever(f"{name} inherits its constructor")


def _arguments(arguments: ast.arguments) -> list[Option]:
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs:
        raise TooClever("it takes more than keywords")
    positional = arguments.args[1:]
    gap: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults = [*gap, *arguments.defaults, *arguments.kw_defaults]
    both = zip([*positional, *arguments.kwonlyargs], defaults, strict=True)
    return [Option(arg.arg, _annotation(arg.annotation), _default(node)) for arg, node in both]


def _fields(node: ast.ClassDef) -> list[Option]:
    fields = [
        n for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    ]
    return [
        Option(field.target.id, _annotation(field.annotation), _default(field.value))
        for field in fields
        if isinstance(field.target, ast.Name)
    ]


def _annotation(node: ast.expr | None) -> Any:
    if node is None:
        return Any
    try:
        # The words of an annotation, and no others, in a source the user has installed.
        return eval(ast.unparse(node), {"__builtins__": {}}, VOCABULARY)  # noqa: S307
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise TooClever(str(error)) from error


def _default(node: ast.expr | None) -> Any:
    if node is None:
        return REQUIRED
    if isinstance(node, ast.Call):
        factories = [keyword.value for keyword in node.keywords if keyword.arg == "factory"]
        if factories:
            return [] if _last_name(factories[0]) == "list" else {}
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise TooClever(str(error)) from error


def _last_name(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
