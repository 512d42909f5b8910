"""The names of our measures in hosts that write measures in lower case: `sre`, `avg_gain`, `n_dcgg`."""

from __future__ import annotations

from goodgain.measures import MEASURES
from goodgain.measures.declaration import GoodGainMeasure

__all__ = ["HOST_NAMES"]


def _name_measure(measure: GoodGainMeasure) -> dict[str, GoodGainMeasure]:
    """Return a measure by its host name, and by a name of its own for each other value of its parameter.

    These hosts have no syntax for parameters but cutoff and threshold.
    """
    name = measure.declaration.host_name
    return {name: measure} | {
        f"{name}_{choice}": measure(**{parameter: choice})
        for parameter, info in measure.declaration.own.items()
        for choice in (info.choices if isinstance(info.choices, list) else ())
        if choice != info.default
    }


#: Measure by host name; `iterations_for_all_good_results_retrieved` is the one with pool='retrieved'.
HOST_NAMES: dict[str, GoodGainMeasure] = {
    name: named for measure in MEASURES.values() for name, named in _name_measure(measure).items()
}
