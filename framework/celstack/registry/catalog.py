"""The catalog of installed plugins, from entry points.

Listing reads package metadata only. Each plugin is imported by itself, when it is first used;
one that fails does not affect the others, and its error is part of the message wherever its
name is not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Any, NamedTuple

from celstack.errors import CelstackError
from celstack.registry.kinds import KINDS, Kind
from celstack.text import describe_error, did_you_mean, format_value

GROUP = "celstack"
# If a third-party package uses a name of the core's own distribution, the core's is used. If
# two third-party packages use the same name, both are refused.
CORE = "celstack"


class Plugin(NamedTuple):
    """One entry point of the group ``celstack``, not yet imported."""

    kind: str
    name: str
    package: str
    version: str
    entry: EntryPoint
    refused: str = ""

    @property
    def title(self) -> str:
        """Return the entry point and its package: ``dataset-clevr6 (acme-scenes 0.3)``."""
        return f"{self.entry.name} ({self.owner})"

    @property
    def owner(self) -> str:
        """Return the package and its version."""
        return f"{self.package} {self.version}"


class BrokenPluginError(CelstackError):
    """A plugin that cannot be loaded."""


class Catalog:
    """All plugins that are installed, by kind and name.

    Args:
        entries: Entry points to use instead of those that are installed.
        used: What a run had installed, such as ``{"metric-gloss": "acme-parts==0.3"}``, for
            the message about a plugin that is missing now.
    """

    def __init__(
        self,
        entries: Iterable[EntryPoint] | None = None,
        used: Mapping[str, str] | None = None,
    ) -> None:
        self.used = used or {}
        found = entry_points(group=GROUP) if entries is None else entries
        self.plugins = _refuse_duplicates(sorted(_read(list(found))))
        self._known = {(p.kind, p.name): p for p in self.plugins if not p.refused}
        self._loaded: dict[tuple[str, str], type[Any] | BrokenPluginError] = {}

    def names(self, kind: str) -> list[str]:
        """List the names of the plugins of a kind."""
        return [name for known, name in self._known if known == kind]

    def find(self, kind: str, name: str) -> Plugin:
        """Find a plugin without importing it, or raise CelstackError with the known names."""
        if (kind, name) in self._known:
            return self._known[kind, name]
        raise CelstackError(self._explain_absence(kind, name))

    def load(self, kind: str, name: str) -> type[Any]:
        """Import a plugin and return its class, or raise BrokenPluginError."""
        plugin = self.find(kind, name)
        if (kind, name) not in self._loaded:
            try:
                self._loaded[kind, name] = _load(plugin)
            # Importing a third-party module may raise anything.
            except (Exception, SystemExit) as error:
                reason = (
                    str(error)
                    if isinstance(error, BrokenPluginError)
                    else describe_error(error)
                )
                self._loaded[kind, name] = BrokenPluginError(
                    f"broken plugin: {plugin.title}: {reason}"
                )
        outcome = self._loaded[kind, name]
        if isinstance(outcome, BrokenPluginError):
            raise outcome
        return outcome

    def name_of(self, kind: str, part: type[Any], likely: str) -> str | None:
        """Return the name of the plugin that provides a class; None if none does.

        Args:
            kind: The kind of the part.
            part: Its class.
            likely: The name that is tried first; then those of the same top-level package.
        """
        package = part.__module__.partition(".")[0]
        same = [n for n in self.names(kind) if _top_package(self._known[kind, n]) == package]
        for name in [likely, *same]:
            try:
                found = self.load(kind, name)
            except CelstackError:
                continue
            # Not compared by identity, because notebooks reload modules.
            if (found.__module__, found.__qualname__) == (part.__module__, part.__qualname__):
                return name
        return None

    def _explain_absence(self, kind: str, name: str) -> str:
        if ":" in name:
            return (
                f"no {kind} is called {format_value(name)}: this is a class of a run that was "
                "made in Python, in a way that a recipe cannot express; open the run there: "
                "celstack.open_run(folder, assembly=assembly)"
            )
        known = self.names(kind)
        text = f"no {kind} is called {format_value(name)}{did_you_mean(name, known)}"
        others = [KINDS[other].title for other, same in self._known if same == name]
        if others:
            text = f"{format_value(name)} is {' and '.join(others)}, not {KINDS[kind].title}"
        text += f" (known: {', '.join(known) or 'none'})"
        for plugin in self.plugins:
            # An entry point with a malformed name may be the one that is meant.
            malformed = plugin.kind not in KINDS and plugin.entry.name.endswith(name)
            if plugin.refused and (plugin.entry.name == f"{kind}-{name}" or malformed):
                text += f"; refused plugin: {plugin.title}: {plugin.refused}"
        if requirement := self.used.get(f"{kind}-{name}"):
            owner = requirement.replace("==", " ")
            text += f"; the run used that of {owner}: 'pip install {requirement}' installs it"
        return text


def _top_package(plugin: Plugin) -> str:
    return plugin.entry.module.partition(".")[0]


def _load(plugin: Plugin) -> type[Any]:
    from pluggy import PluginValidationError

    from celstack.registry.manager import new_plugin_manager

    # One manager for each plugin, so that they cannot affect each other.
    manager = new_plugin_manager()
    module = plugin.entry.load()
    manager.register(module, name=plugin.entry.name)
    try:
        manager.check_pending()
    except PluginValidationError:
        hooks = manager.get_hookcallers(module) or []
        name = next(hook.name for hook in hooks if not hook.has_spec())
        hint = did_you_mean(name, (kind.hook for kind in KINDS.values()))
        raise BrokenPluginError(f"there is no hook {name}{hint}") from None
    kind = KINDS[plugin.kind]
    return _checked_class(getattr(manager.hook, kind.hook)(), kind, plugin.name)


def _checked_class(provided: list[Any], kind: Kind, name: str) -> type[Any]:
    if not provided:
        raise BrokenPluginError(
            f"it has no hook {kind.hook}, or lacks @hookimpl on it, or it returns nothing"
        )
    if not isinstance(provided[0], dict):
        raise BrokenPluginError(
            f"its {kind.hook} must return a dict of classes by name, "
            f"not {format_value(provided[0])}"
        )
    if name not in provided[0]:
        others = ", ".join(map(format_value, provided[0])) or "nothing"
        raise BrokenPluginError(f"its {kind.hook} provides {others}, not '{name}'")
    part = provided[0][name]
    if not isinstance(part, type) or not issubclass(part, kind.load_interface()):
        raise BrokenPluginError(
            f"{format_value(part)} is not a subclass of celstack.{kind.interface}"
        )
    missing = ", ".join(sorted(getattr(part, "__abstractmethods__", ())))
    if missing:
        raise BrokenPluginError(f"{part.__name__} does not define {missing}")
    return part


def _read(entries: Iterable[EntryPoint]) -> list[Plugin]:
    owners: dict[int, tuple[str, str]] = {}
    plugins = []
    for entry in entries:
        # The name of a distribution is parsed from its metadata at every access.
        if id(entry.dist) not in owners:
            owners[id(entry.dist)] = _owner(entry.dist)
        kind, _, name = entry.name.partition("-")
        refused = ""
        if kind not in KINDS or not name:
            refused = f"an entry is named <kind>-<name>, the kind one of {', '.join(KINDS)}"
        elif not entry.pattern.match(entry.value):
            refused = f"{format_value(entry.value)} does not name a module"
        plugins.append(Plugin(kind, name, *owners[id(entry.dist)], entry, refused))
    return plugins


def _owner(dist: Distribution | None) -> tuple[str, str]:
    try:
        return (dist.name, str(dist.version)) if dist and dist.name else ("?", "?")
    except Exception:  # damaged metadata does not make the code unusable
        return ("?", "?")


def _refuse_duplicates(plugins: list[Plugin]) -> list[Plugin]:
    claims: dict[str, list[Plugin]] = {}
    for plugin in plugins:
        claims.setdefault(plugin.entry.name, []).append(plugin)
    return [_judge(plugin, claims[plugin.entry.name]) for plugin in plugins]


def _judge(plugin: Plugin, claimants: list[Plugin]) -> Plugin:
    rivals = [rival.owner for rival in claimants if rival is not plugin]
    if plugin.refused or not rivals or plugin.package == CORE:
        return plugin
    if any(rival.package == CORE for rival in claimants):
        return plugin._replace(refused=f"the name is taken by {CORE}")
    return plugin._replace(refused=f"the name is claimed by {' and '.join(rivals)} too")
