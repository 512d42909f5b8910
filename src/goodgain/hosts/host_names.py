"""The names of our measures in hosts that write measures in lower case: `sre`, `avg_gain`, `n_dcgg`."""

from __future__ import annotations

from goodgain.measures import MEASURES
from goodgain.measures.declaration import Choice, GoodGainMeasure

__all__ = ["HOST_NAMES"]


def _name_measure(measure: GoodGainMeasure) -> dict[str, GoodGainMeasure]:
    """Return a measure by its host name, and by a name of its own for each other value of its parameter.

    These hosts have no syntax for parameters but cutoff and threshold.
    """
    name, value = measure.declaration.host_name, measure.declaration.value
    if not isinstance(value, Choice):
        return {name: measure}
    others = [other for other in value.values if other != value.default]
    return {name: measure} | {f"{name}_{other}": measure(**{value.parameter: other}) for other in others}


#: Measure by host name; `iterations_for_all_good_results_retrieved` is the one with pool='retrieved'.
HOST_NAMES: dict[str, GoodGainMeasure] = {
    name: named for measure in MEASURES.values() for name, named in _name_measure(measure).items()
}
