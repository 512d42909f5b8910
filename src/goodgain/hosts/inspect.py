"""A scorer for Inspect: scores the searches of each sample with qrels. The query ids of the qrels are the ids of samples.

`inspect score run.eval --scorer goodgain/goodgain -S qrels=qrels.txt -S measures=nCG@3` scores an existing log.
"""

import json
import math
import os
from functools import cache
from typing import Any

from goodgain.errors import InputError, import_extra
from goodgain.formats import read_qrels
from goodgain.hosts.trace_scorer import TraceScorer
from goodgain.measures.names import Measures, parse_measures

__all__ = ["scorer"]


def scorer(qrels: Any, measures: Measures, *, rel: float | None = None, **options: Any) -> Any:
    """Return an Inspect scorer, for `Task(scorer=...)` and `inspect_ai.score(log, ...)`.

    The value of a sample is a dict {measure: value}. Inspect averages the epochs of a sample, then computes mean and stderr
    over the samples. The means equal those of `goodgain.evaluate` with the epochs as replicates.

    A sample is unscored if the searches cannot be read or the qrels lack the id of the sample. The `explanation` of the score
    gives the reason. Judged queries without a sample do not count.

    Args:
        qrels: any input of `goodgain.read_qrels`. Give a path if Inspect may create the scorer again from the log.
        measures: as in `goodgain.evaluate`.
        rel: the smallest good label, as in `goodgain.evaluate`.
        options: options of `goodgain.read_traces`, such as `tools` (the search tools) or `iteration` (the unit of an iteration).

    Raises:
        InputError: Inspect is not installed, the qrels cannot be read, or an option is wrong.
        MeasureError: a measure is unknown.
    """
    # Inspect writes the arguments to the log. From a path, Inspect can create the scorer again.
    source = os.fspath(qrels) if isinstance(qrels, (str, os.PathLike)) else read_qrels(qrels)
    names = measures if isinstance(measures, str) else list(map(str, parse_measures(measures)))
    return _register()(source, names, rel=rel, **options)


def __getattr__(name: str) -> Any:
    if name == "registered":  # the entry point that Inspect loads
        return _register()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _register() -> Any:
    """Register the scorer with Inspect under the name `goodgain`, and return the function that makes a scorer."""
    inspect = import_extra("inspect_ai.scorer", "inspect")

    def goodgain(qrels: Any, measures: Measures, *, rel: float | None = None, **options: Any) -> Any:
        ids = "the ids of the samples"
        scoring = TraceScorer(qrels, measures, format="inspect_ai", query_ids_are=ids, rel=rel, **options)

        async def score(state: Any, target: Any) -> Any:
            try:
                scores = scoring.score(_write_sample(state))
            except InputError as error:  # NaN is unscored; Inspect's reducers need the same keys in all epochs
                return inspect.Score(value=dict.fromkeys(scoring.names, math.nan), explanation=str(error))
            values = {name: math.nan if value is None else value for name, value in scores.values.items()}
            metadata = {"signature": scores.signature, "notes": scores.notes}
            return inspect.Score(value=values, explanation=scores.explanation, metadata=metadata)

        return score

    goodgain.__annotations__["return"] = inspect.Scorer  # older versions create scorers by name only with this
    metrics = {"*": [inspect.mean(), inspect.stderr()]}
    return inspect.scorer(metrics=metrics, name="goodgain")(goodgain)


def _write_sample(state: Any) -> bytes:
    """Return the state of a task as JSON, like a sample in a log. Tool events are added, because messages may lack tool calls."""
    transcript = import_extra("inspect_ai.log", "inspect").transcript()
    events = [event for event in transcript.events if event.event == "tool"]
    sample = {
        "id": state.sample_id,
        "epoch": state.epoch,
        "input": state.input_text,
        "target": state.target.text,
        "messages": [message.model_dump(mode="json", exclude_none=True) for message in state.messages],
        "events": [{"event": "tool", "id": event.id, "function": event.function} for event in events],
    }
    return json.dumps(sample).encode()
