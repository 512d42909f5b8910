"""A scorer for Inspect: the searches of each sample, scored with qrels. The query ids of the qrels are the ids of the samples.

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

    The value of a sample is a dict of measure and value. Each measure has the metrics mean and stderr over the samples;
    Inspect's reducer averages the epochs of a sample first. So `goodgain.evaluate` gives the same means with the epochs as
    replicates.

    A sample is unscored if the searches cannot be read or the qrels lack the id of the sample; the explanation says why. A
    judged query without a sample does not count.

    Args:
        qrels: what `goodgain.read_qrels` takes. Give a path if Inspect may create the scorer again from the log.
        measures: what `goodgain.evaluate` takes.
        rel: the smallest good label, as in `goodgain.evaluate`.
        options: of `goodgain.read_traces`: which tools are searches (`tools`), what an iteration is (`iteration`) ...

    Raises:
        InputError: Inspect is not installed, the qrels cannot be read, or an option is wrong.
        MeasureError: a measure is unknown.
    """
    # The log records the arguments: a path, by which Inspect can create the scorer again, but no table of labels.
    given = os.fspath(qrels) if isinstance(qrels, (str, os.PathLike)) else read_qrels(qrels)
    names = measures if isinstance(measures, str) else list(map(str, parse_measures(measures)))
    return _register()(given, names, rel=rel, **options)


def __getattr__(name: str) -> Any:
    if name == "registered":  # what Inspect loads from our entry point: it imports Inspect
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
                found = scoring.score(_write_sample(state))
            except InputError as error:  # NaN is unscored; Inspect's reducers need the same keys in all epochs
                return inspect.Score(value=dict.fromkeys(scoring.names, math.nan), explanation=str(error))
            values = {name: math.nan if value is None else value for name, value in found.values.items()}
            made = {"signature": found.signature, "notes": found.notes}
            return inspect.Score(value=values, explanation=found.explanation, metadata=made)

        return score

    goodgain.__annotations__["return"] = inspect.Scorer  # older versions create scorers by name only with this
    metrics = {"*": [inspect.mean(), inspect.stderr()]}
    return inspect.scorer(metrics=metrics, name="goodgain")(goodgain)


def _write_sample(state: Any) -> bytes:
    """Return the sample of a task's state as in a log, with the tool events that the messages may lack."""
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
