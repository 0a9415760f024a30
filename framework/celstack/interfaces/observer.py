"""Observer: is told what happens in a run."""

from __future__ import annotations

from celstack.interfaces.part import Part


class Observer(Part):
    r"""Somebody who is told what happens in a run.

    An observer has methods named like the lifecycle hooks of ``celstack.hookspecs``, marked
    with ``hookimpl``, each taking what it wants of the hook's arguments::

        class Bell(Observer):
            @hookimpl
            def celstack_run_finished(self, folder):
                print("\a", folder)

    Laws:
        Observers watch: they do not change the model, the data or the random state.
        One that raises is reported once and hears nothing more; the run goes on.
    """

    terminal: bool = False
    """Whether it writes to the terminal; ``--quiet`` leaves such observers out."""
