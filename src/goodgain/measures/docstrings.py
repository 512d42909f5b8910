"""The help of a measure, written from its declaration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ir_measures.measures import ParamInfo

if TYPE_CHECKING:
    from goodgain.measures.declaration import Declaration

#: The run of the examples as Python code, over iterations or ranks, and its judgments: `a`, `c` and `e` are good.
_RUNS = {
    True: 'polars.DataFrame({"query_id": "q", "iteration": [1, 1, 1, 2, 2, 2], "doc_id": list("abfacd")})',
    False: '{"q": {"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0, "f": 1.0}}',
}
_QRELS = {
    "": '{"q": {"a": 3, "b": 0, "c": 2, "e": 2, "f": 0}}',
    "subtopic": 'polars.DataFrame({"query_id": "q", "iteration": ["1", "2", "2"], "doc_id": list("ace"), "relevance": [3, 2, 2]})',
}
_RESULTS = (
    'polars.DataFrame({"query_id": "q", "iteration": [1, 2], "search": 1, "rank": 0, "search_query": ["dam", "Dam"]})'
)


def write_docstring(declared: Declaration, supported: Mapping[str, ParamInfo]) -> str:
    """Write the help of a measure: title, formula, meaning of @ and good, bounds, example, source."""
    terms = [f"{declared.title}.", f"{declared.definition}."]
    at = supported.get(declared.at)
    if at is not None and declared.at != "cutoff":
        terms.append(f"@ is the {at.desc}.")
    elif at is not None and not declared.is_over_iterations:
        terms.append("@k is a cutoff in ranks.")
    elif at is not None and at.required:
        terms.append("@i is the iteration.")
    elif at is not None:
        terms.append("@i is a cutoff in iterations; without it, the value is at the last iteration of each query.")
    if "rel" in supported and declared.is_over_iterations:
        default = supported["rel"].default
        told = default if isinstance(default, int) else "that of the measure"
        terms.append(f"A document is good if its label is at least rel ({told} unless given).")
    elif "rel" in supported:
        terms.append("A document is relevant if its label is at least rel.")
    terms += [f"{name}: {info.desc}." for name, info in declared.own.items() if name not in (declared.at, "rel")]
    least, most = declared.bounds
    better = {"up": "; higher is better", "down": "; lower is better", None: ""}[declared.better]
    terms.append(f"Values go from {least} to {most}{better}." if most else f"Values are at least {least}{better}.")
    if declared.note:
        terms.append(f"Note: {declared.note}.")
    if declared.example is not None:
        name, value = declared.example
        is_of_strings = declared.table({"over": ""}) == "results"
        more = (declared.labels and f", labels={declared.labels!r}") or ", results=results" * is_of_strings
        lines = [
            f">>> import goodgain{', polars' if declared.is_over_iterations else ''}",
            f">>> run = {_RUNS[declared.is_over_iterations]}",
            f">>> qrels = {_QRELS[declared.labels]}",
            *([f">>> results = {_RESULTS}"] if is_of_strings else []),
            f'>>> goodgain.evaluate(qrels, run, "{name}"{more}).mean()',
            repr({name: value}),
        ]
        terms.append("\n".join(lines))
    return "\n\n".join([*terms, f"Source: {declared.source}."])
