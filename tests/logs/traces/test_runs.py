"""From results to runs: names of documents, ranks, scores, iterations without results."""

from __future__ import annotations

import itertools
import math
import random
import re
from typing import Any

import pandas as pd
import polars as pl
import pytest

import goodgain as gg
from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.traces import to_run


def _results(*rows: tuple[Any, ...], columns: str = "query_id iteration search rank doc_id") -> pl.DataFrame:
    return pl.DataFrame(rows, schema=columns.split(), orient="row")


def test_ranks_run_on_through_the_calls_of_an_iteration_and_begin_anew_in_the_next() -> None:
    run = to_run(_results(("q", 1, 1, 1, "a"), ("q", 1, 1, 2, "b"), ("q", 1, 2, 1, "a"), ("q", 2, 1, 1, "c")))
    assert run.drop("score", "tag").rows() == [("q", 1, "a", 1), ("q", 1, "b", 2), ("q", 1, "a", 3), ("q", 2, "c", 1)]
    assert run.columns == ["query_id", "iteration", "doc_id", "rank", "score", "tag"]


def test_an_iteration_without_results_is_a_row_and_so_is_a_query_without_a_search() -> None:
    run = to_run(_results(("q", 1, 1, 0, None), ("q", 2, 1, 0, None), ("q", 2, 2, 1, "a"), ("p", 0, 0, 0, None)))
    rows = [("q", 1, "-", 0, 0.0), ("q", 2, "a", 1, 1.0), ("p", None, "-", 0, 0.0)]
    assert run.drop("tag").rows() == rows


def test_order_of_rows_does_not_matter() -> None:
    results = _results(("q", 1, 1, 1, "a"), ("q", 1, 2, 1, "b"), ("q", 2, 1, 1, "c"), ("q", 3, 1, 0, None))
    assert to_run(results.reverse()).equals(to_run(results))


@pytest.mark.slow
def test_rows_in_any_order_make_the_run_that_counting_by_hand_makes() -> None:
    chance = random.Random(11)
    columns = "query_id iteration search rank doc_id score"
    schema = dict(zip(columns.split(), [pl.String, pl.Int64, pl.Int64, pl.Int64, pl.String, pl.Float64], strict=True))

    for turn in range(300):
        rows = [
            (
                chance.choice("abc"), chance.choice((0, 1, 2)), chance.choice((1, 2)), chance.choice((0, 1, 2)),
                f"d{number}", chance.choice((None, 1.5, float("nan"), 2.0) if turn % 2 else (1.5, 2.0)),
            ) for number in range(chance.choice((0, 1, 5, 12)))
        ]  # fmt: skip
        if turn % 3 == 0:
            rows.sort(key=lambda row: row[:4])
        run = to_run(pl.DataFrame(rows, schema=schema, orient="row"))
        assert run.drop("tag").rows() == _by_hand(rows)


def _by_hand(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    run: list[tuple[Any, ...]] = []
    for query in dict.fromkeys(row[0] for row in rows):
        iterations = sorted({row[1] for row in rows if row[0] == query})
        for iteration in iterations:
            found = [row for row in rows if row[:2] == (query, iteration) and row[3] > 0]
            found.sort(key=lambda row: row[2:4])
            scores = [-math.inf if row[-1] is None else row[-1] for row in found]
            scored = all(map(math.isfinite, scores)) and all(b < a for a, b in itertools.pairwise(scores))
            for rank, (*_, name, score) in enumerate(found, start=1):
                run.append((query, iteration, name, rank, score if scored else 1 / rank))
            if not found and iteration > 0:
                run.append((query, iteration, "-", 0, 0.0))
            if not found and iterations == [0]:
                run.append((query, None, "-", 0, 0.0))

    return run


def test_scores_are_the_log_s_where_all_results_of_an_iteration_have_one() -> None:
    columns = "query_id iteration search rank doc_id score"
    rows = [("q", 1, 1, 1, "a", 7.5), ("q", 1, 1, 2, "b", 7.0), ("q", 2, 1, 1, "c", 3.0), ("q", 2, 1, 2, "d", None)]
    assert to_run(_results(*rows, columns=columns))["score"].to_list() == [7.5, 7.0, 1.0, 0.5]


@pytest.mark.parametrize(
    "scores",
    [
        pytest.param([0.9, 0.8, 12.5, 11.0], id="two searches side by side, each with a scale of its own"),
        pytest.param([0.1, 0.4, 0.7, 0.9], id="distances"),
        pytest.param([1.0, 1.0, 1.0, 1.0], id="ties, which trec_eval orders by doc_id"),
        pytest.param([0.5, 0.5 - 1e-12, 0.5 - 2e-12, 0.1], id="ties in 32 bits"),
    ],
)
def test_classic_measures_see_the_log_s_ranks_whatever_its_scores_say(scores: list[float]) -> None:
    """A further search, even one without results, does not change which result was the first."""
    columns = "query_id iteration search rank doc_id score"
    rows = [
        ("q", 1, 1 + k // 2, 1 + k % 2, name, score) for k, (name, score) in enumerate(zip("abcd", scores, strict=True))
    ]
    for more in ([], [("q", 2, 1, 0, None, None)]):
        run = to_run(_results(*rows, *more, columns=columns))
        assert gg.evaluate({"q": {"a": 2}}, run, "RR")["RR"] == 1.0


def test_a_document_is_named_by_document_then_doc_id_then_url_then_text() -> None:
    columns = "query_id iteration search rank document doc_id url title snippet"
    rows = [
        ("q", 1, 1, 1, "g", "d", "u", "t", "s"),
        ("q", 1, 1, 2, None, "d", "u", "t", "s"),
        ("q", 1, 1, 3, None, None, "HTTP://A.example", "t", "s"),
        ("q", 1, 1, 4, None, None, None, "t", "s  s"),
        ("q", 1, 1, 5, None, None, None, "t", "s\ns"),
        ("q", 1, 1, 6, None, None, None, None, None),
        ("q", 1, 1, 7, None, None, "javascript:x", None, None),
    ]
    names = to_run(_results(*rows, columns=columns), normalise_url=lambda url: url.lower() if "//" in url else None)
    ids = names["doc_id"].to_list()

    assert ids[:3] == ["g", "d", "http://a.example"]
    assert ids[3] == ids[4] and all(name.startswith("text:") and len(name) == 21 for name in ids[3:])
    assert len(set(ids[3:])) == 3


def test_an_id_that_would_mean_nothing_found_names_no_document() -> None:
    run = to_run(_results(("q", 1, 1, 1, "-", "Dash"), columns="query_id iteration search rank doc_id title"))
    assert run["doc_id"][0].startswith("text:")


def test_several_systems_are_an_error_unless_one_is_named() -> None:
    results = _results(
        ("q", 1, 1, 1, "a", "x"), ("q", 1, 1, 1, "b", "y"), columns="query_id iteration search rank doc_id system"
    )
    with pytest.raises(InputError, match=r"several systems.*'x', 'y'"):
        to_run(results)
    assert to_run(results, system="y").rows() == [("q", 1, "b", 1, 1.0, "y")]
    assert to_run(results, system="y", tag="mine")["tag"][0] == "mine"
    with pytest.raises(InputError, match="no system 'z', only 'x', 'y'"):
        to_run(results, system="z")


def test_frames_of_other_engines_will_do_and_missing_columns_are_named() -> None:
    frame = pd.DataFrame({"query_id": ["q"], "iteration": [1], "search": [1], "rank": [1], "doc_id": ["a"]})
    assert to_run(frame).rows() == [("q", 1, "a", 1, 1.0, "goodgain")]
    with pytest.raises(InputError, match="lack the columns search, rank"):
        to_run(frame[["query_id", "iteration"]])


def test_no_results_are_an_empty_run() -> None:
    assert to_run(_results().cast({"iteration": pl.Int64})).height == 0


def _number_hits(titles: list[list[str]]) -> pl.DataFrame:
    """Return results whose ids are the ranks in each search, as some tools number them."""
    rows = [
        {"query_id": "q1", "iteration": iteration, "search": 1, "rank": rank, "doc_id": str(rank), "title": title}
        for iteration, search in enumerate(titles, start=1)
        for rank, title in enumerate(search, start=1)
    ]
    return pl.DataFrame(rows)


def test_to_run_tells_that_a_tool_numbers_its_hits() -> None:
    results = _number_hits([["Dunes", "Sand"], ["Wind", "Rain"]])
    sentence = (
        "in 1 query an id stands for different documents (first: '1' of q1: Dunes and Wind): each id counts as one document; "
        "pass goodgain.deduplicate(results) to identify the documents"
    )
    with pytest.warns(GoodgainNotice, match=f"^{re.escape(sentence)}$") as told:
        run = to_run(results)
    assert [str(one.message) for one in told] == [sentence]
    assert run["doc_id"].to_list() == ["1", "2", "1", "2"]  # the ids are kept

    documents = to_run(gg.deduplicate(results))["doc_id"]  # an error if it gives the notice
    assert documents.n_unique() == 4


def test_to_run_says_nothing_of_ids_that_name_one_document() -> None:
    same = to_run(_number_hits([["Dunes", "Sand"], ["Dunes", "Sand"]]))
    assert same["doc_id"].to_list() == ["1", "2", "1", "2"]
