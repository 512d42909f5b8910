"""Writes the example in the docstring of a measure: one run and qrels for all measures, and the table that a measure needs."""

#: Python code of the runs, over iterations and over ranks.
_RUN_OF_ITERATIONS = 'polars.DataFrame({"query_id": "q", "iteration": [1, 1, 1, 2, 2, 2], "doc_id": list("abfacd")})'
_RANKED_RUN = '{"q": {"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0, "f": 1.0}}'
#: Argument `labels` -> Python code of the qrels, where `a`, `c` and `e` are good.
_QRELS = {
    "": '{"q": {"a": 3, "b": 0, "c": 2, "e": 2, "f": 0}}',
    "subtopic": 'polars.DataFrame({"query_id": "q", "iteration": ["1", "2", "2"], "doc_id": list("ace"), "relevance": [3, 2, 2]})',
}
#: Name of a table -> its Python code.
_TABLES = {
    "results": 'polars.DataFrame({"query_id": "q", "iteration": [1, 2], "search": 1, "rank": 0, "search_query": ["dam", "Dam"]})',
    "lengths": 'dict.fromkeys("abcdef", 100)',
    "costs": 'polars.DataFrame({"query_id": "q", "calls": [2], "input_tokens": [600], "seconds": [6.0], "cost": [0.5]})',
}


def write_example(measure: str, value: float, *, is_over_iterations: bool, labels: str, table: str) -> str:
    """Return a doctest that scores the run with a measure. `labels` and `table` are empty texts if the measure needs none."""
    lines = [">>> import goodgain", f">>> run = {_RANKED_RUN}"]
    if is_over_iterations:
        lines = [">>> import goodgain, polars", f">>> run = {_RUN_OF_ITERATIONS}"]
    lines.append(f">>> qrels = {_QRELS[labels]}")

    arguments = f'qrels, run, "{measure}"'
    if labels:
        arguments += f", labels={labels!r}"
    if table:
        lines.append(f">>> {table} = {_TABLES[table]}")
        arguments += f", {table}={table}"
    lines.append(f">>> goodgain.evaluate({arguments}).mean()")
    lines.append(repr({measure: value}))
    return "\n".join(lines)
