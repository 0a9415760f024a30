"""Observer: callbacks for the events of a run."""

from __future__ import annotations

from celstack.interfaces.part import Part


class Observer(Part):
    r"""A set of callbacks for the events of a run.

    An observer has methods named like the lifecycle hooks of ``celstack.hookspecs``, marked
    with ``hookimpl``. Each takes those of the hook's arguments that it needs::

        class Bell(Observer):
            @hookimpl
            def celstack_run_finished(self, folder):
                print("\a", folder)

    Two of its means change a run: raising ``StopTraining`` in any hook ends training, and what
    ``celstack_step_started`` returns are the learning rates of the next step::

        class Enough(Observer):
            @hookimpl
            def celstack_validated(self, scores):
                if scores["mse"] < 1e-3:
                    raise StopTraining("mse is below 0.001")

    Laws:
        Observers do not change the model, the data or the random state.
        An observer that raises anything else is reported once and not called again; the run
        continues. A run that is resumed without an observer that steered it goes on unsteered.
    """

    terminal: bool = False
    """Whether it writes to the terminal; ``--quiet`` disables such observers."""
