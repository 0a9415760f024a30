"""Entry points to parts: what is installed, and what of it is broken.

Listing reads package metadata alone. A plugin is imported when it is needed, by itself,
and one that fails costs only itself: the reason is kept and told when its name is missed.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from inspect import isabstract, isclass
from typing import TYPE_CHECKING, Any, NamedTuple

from celstack.errors import CelstackError, did_you_mean, one_line
from celstack.kinds import KINDS, Kind

if TYPE_CHECKING:
    import pluggy

GROUP = "celstack"
# Recipes of the core's own distribution keep their meaning whatever else is installed;
# between two strangers nobody can say who is meant, and both are refused.
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
        """Name the plugin and its owner, as in ``dataset-clevr6 (acme-scenes 0.3)``."""
        return f"{self.entry.name} ({self.owner})"

    @property
    def owner(self) -> str:
        """Name the package and its version."""
        return f"{self.package} {self.version}"


class BrokenPluginError(CelstackError):
    """A plugin that cannot be used, and why."""


class Catalog:
    """All plugins that are installed, by kind and name."""

    def __init__(self, entries: Iterable[EntryPoint] | None = None) -> None:
        found = entry_points(group=GROUP) if entries is None else entries
        self.plugins = _refuse_duplicates(sorted(map(_read, found)))
        self._known = {(p.kind, p.name): p for p in self.plugins if not p.refused}
        self._loaded: dict[tuple[str, str], type[Any] | BrokenPluginError] = {}
        self._manager: pluggy.PluginManager | None = None

    def names(self, kind: str) -> list[str]:
        """List the names a recipe may use for parts of this kind."""
        return [name for known, name in self._known if known == kind]

    def find(self, kind: str, name: str) -> Plugin:
        """Find a plugin without importing it, or say what is known instead."""
        if (kind, name) in self._known:
            return self._known[kind, name]
        raise CelstackError(self._explain_absence(kind, name))

    def load(self, kind: str, name: str) -> type[Any]:
        """Import a plugin and return its class, or say why it is broken."""
        plugin = self.find(kind, name)
        if (kind, name) not in self._loaded:
            try:
                self._loaded[kind, name] = self._load(plugin)
            # Whatever a stranger's module does while it is imported is its own fault.
            except (Exception, SystemExit) as error:
                reason = str(error) if isinstance(error, BrokenPluginError) else one_line(error)
                self._loaded[kind, name] = BrokenPluginError(
                    f"broken plugin: {plugin.title}: {reason}"
                )
        outcome = self._loaded[kind, name]
        if isinstance(outcome, BrokenPluginError):
            raise outcome
        return outcome

    def _load(self, plugin: Plugin) -> type[Any]:
        from celstack.pluginmanager import new_plugin_manager

        manager = self._manager = self._manager or new_plugin_manager()
        module = plugin.entry.load()
        if not manager.is_registered(module):
            manager.register(module, name=plugin.entry.name)
        try:
            manager.check_pending()  # finds hooks that are misspelt
            others = [other for other in manager.get_plugins() if other is not module]
            kind = KINDS[plugin.kind]
            hook = manager.subset_hook_caller(kind.hook, remove_plugins=others)
            return _checked_class(hook(), kind, plugin.name)
        except Exception:
            manager.unregister(module)
            raise

    def _explain_absence(self, kind: str, name: str) -> str:
        known = self.names(kind)
        text = f"no {kind} is called '{name}'{did_you_mean(name, known)}"
        others = [other for other, same in self._known if same == name]
        if others:
            text = f"'{name}' is a {' and a '.join(others)}, not a {kind}"
        text += f" (known: {', '.join(known) or 'none'})"
        for plugin in self.plugins:
            if plugin.refused and plugin.entry.name == f"{kind}-{name}":
                text += f"; refused plugin: {plugin.title}: {plugin.refused}"
        return text


def _read(entry: EntryPoint) -> Plugin:
    kind, _, name = entry.name.partition("-")
    package, version = (entry.dist.name, entry.dist.version) if entry.dist else ("?", "?")
    refused = ""
    if kind not in KINDS or not name:
        refused = f"an entry is named <kind>-<name>, the kind one of {', '.join(KINDS)}"
    return Plugin(kind, name, package, version, entry, refused)


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


def _checked_class(provided: list[Any], kind: Kind, name: str) -> type[Any]:
    if not provided:
        raise BrokenPluginError(f"it has no hook {kind.hook}, or lacks @hookimpl on it")
    if not isinstance(provided[0], dict) or name not in provided[0]:
        raise BrokenPluginError(f"its {kind.hook} does not provide '{name}'")
    part = provided[0][name]
    interface = kind.load_interface()
    if not isclass(part) or not issubclass(part, interface):
        raise BrokenPluginError(f"{part!r} is not a subclass of celstack.{kind.interface}")
    if isabstract(part):
        missing = ", ".join(sorted(getattr(part, "__abstractmethods__", ())))
        raise BrokenPluginError(f"{part.__name__} lacks {missing}")
    return part
