"""Lists goodgain's own measures by family. The order of the imports is the order of the lists, as in `goodgain measures`."""

# isort: off
import goodgain.measures.good_gain
import goodgain.measures.classic
import goodgain.measures.not_in_ir_measures
import goodgain.measures.session_measures
import goodgain.measures.nugget_measures
import goodgain.measures.session_gain
import goodgain.measures.beside_the_run
import goodgain.measures.reading_effort  # noqa: F401  # imported to declare their measures

# isort: on
from goodgain.measures.declaration import DECLARATIONS, Declaration, GoodGainMeasure


def _list_families(*families: str) -> dict[str, Declaration]:
    return {name: declared for name, declared in DECLARATIONS.items() if declared.family in families}


#: Name -> measure: those computed from the ledger, good-gain measures and counts.
MEASURES: dict[str, GoodGainMeasure] = {
    name: declared.measure  # type: ignore[misc]  # over the ledger
    for name, declared in _list_families("good gain", "counts").items()
}

#: Name -> declaration: the measures over one ranking that ir_measures lacks; then all measures over one ranking.
HOSTLESS_MEASURES = _list_families("ranked", "graded")
RANKED_MEASURES = _list_families("classic") | HOSTLESS_MEASURES

#: Name -> declaration: the measures that need all results of all iterations.
SESSION_MEASURES = _list_families("session")


def _name_for_hosts(measure: GoodGainMeasure) -> dict[str, GoodGainMeasure]:
    """Return the host name of a measure, and a further name for each choice of a parameter that is not the default."""
    name = measure.declaration.host_name
    names = {name: measure}
    for parameter, info in measure.declaration.own.items():
        choices = info.choices if isinstance(info.choices, list) else []
        for choice in choices:
            if choice != info.default:
                names[f"{name}_{choice}"] = measure(**{parameter: choice})
    return names


#: Host name -> measure; `iterations_for_all_good_results_retrieved` has pool='retrieved'. These hosts have no null.
HOST_NAMES: dict[str, GoodGainMeasure] = {}
for _measure in MEASURES.values():
    if not _measure.declaration.null_if:
        HOST_NAMES |= _name_for_hosts(_measure)
