"""Our measures under the names of hosts that write them in small letters: `sre`, `avg_gain`, `n_dcgg`."""

from __future__ import annotations

from goodgain.measures import MEASURES
from goodgain.measures.declaration import Choice, GoodGainMeasure

__all__ = ["HOST_NAMES"]


def _named(measure: GoodGainMeasure) -> dict[str, GoodGainMeasure]:
    """A measure under its name, and under a name of its own for each further value of its parameter."""
    name, value = measure.declaration.host_name, measure.declaration.value
    if not isinstance(value, Choice):
        return {name: measure}
    others = [other for other in value.values if other != value.default]
    return {name: measure} | {f"{name}_{other}": measure(**{value.parameter: other}) for other in others}


#: Measure by host name; `iterations_for_all_good_results_retrieved` is the one with pool='retrieved'.
HOST_NAMES: dict[str, GoodGainMeasure] = {
    name: named for measure in MEASURES.values() for name, named in _named(measure).items()
}
