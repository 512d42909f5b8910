"""What `deduplicate` takes and gives back: frames of any engine, runs, several systems, levels, policies, summary."""

import contextlib
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.dedup import deduplicate
from goodgain.logs.dedup.rows_and_trusted_ids import USED_NAMES
from tests.logs.dedup.writing import EN, frame, result
from tests.support.command import run_command
from tests.support.tables import ROOT

_URL = "https://example.org/a"


def _three() -> pl.DataFrame:
    """A page, another, and the first again."""
    return frame([result(url=_URL, title="A"), result(url="https://example.org/b"), result(url=_URL + "?utm_source=x")])


def test_the_frame_has_the_rows_of_the_input_and_four_columns_more() -> None:
    rows = _three()
    found = deduplicate(rows).frame
    assert found.select(rows.columns).equals(rows)
    assert found.drop(rows.columns).to_dict(as_series=False) == {
        "document": [_URL, "https://example.org/b", _URL],
        "duplicate_of": [None, None, 0],
        "rule": [None, None, "url"],
        "confidence": [None, None, 2.0],
    }


@pytest.mark.parametrize("engine", ["polars", "pandas", "pyarrow"])
def test_a_frame_comes_back_in_its_own_kind(engine: str) -> None:
    rows = nw.from_native(_three(), eager_only=True)
    native: Any = {"polars": rows.to_native, "pandas": rows.to_pandas, "pyarrow": rows.to_arrow}[engine]()
    found = deduplicate(native).frame
    assert type(found) is type(native)
    assert nw.from_native(found, eager_only=True)["document"].to_list() == [_URL, "https://example.org/b", _URL]


def test_an_index_of_pandas_is_kept() -> None:
    rows = pd.DataFrame({"query_id": ["q", "q"], "rank": [1, 2], "url": [_URL, _URL + "#top"]}, index=[7, 7])
    found = deduplicate(rows).frame
    assert found.index.tolist() == [7, 7]
    assert found["document"].tolist() == [_URL, _URL]


def test_numbers_are_ids_and_queries_too() -> None:
    rows = pd.DataFrame({"query_id": [1, 1], "rank": [1, 2], "doc_id": [17, 17]})
    assert deduplicate(rows).frame["document"].tolist() == ["17", "17"]


def test_a_blank_id_is_no_id() -> None:
    blank, without = ([result(title=title, snippet=EN, ids=ids) for title in ("A", "B")] for ids in ({"doi": " "}, {}))
    assert deduplicate(frame(blank)).frame["document"].equals(deduplicate(frame(without)).frame["document"])


@pytest.mark.parametrize("column", ["url", "parent_url"])
@pytest.mark.parametrize(
    "other, count",
    [("https://www.example.org/a?utm_source=x", 1), (_URL + "?unknown=1", 2), ("https://example.org/b", 2)],
)
def test_passages_without_a_parent_id_are_of_the_page_of_their_url(column: str, other: str, count: int) -> None:
    passages = [result(type="passage", chunk="3", **{column: url}) for url in (_URL, other)]
    assert deduplicate(frame(passages)).frame["document"].n_unique() == count


@pytest.mark.parametrize("column", ["system", "tag"])
def test_a_document_repeats_within_its_system_only(column: str) -> None:
    rows = pl.concat([_three(), _three()]).with_columns(pl.Series(column, ["s"] * 3 + ["t"] * 3))
    assert deduplicate(rows).frame["duplicate_of"].to_list() == [None, None, 0, None, None, 3]


def test_documents_without_repeats_agree_with_groups_without_repeats() -> None:
    found = deduplicate(frame([result(url=_URL), result(url="https://example.org/b")]))
    agreement = found.score(["one", "other"])
    assert (agreement.precision, agreement.recall, agreement.f1, agreement.bcubed_f1) == (1.0, 1.0, 1.0, 1.0)
    assert found.score(["one", "one"]).recall == 0.0


def test_groups_in_a_column_that_is_missing_are_refused() -> None:
    with pytest.raises(InputError, match="gold='nobody' is not a column of the results"):
        deduplicate(_three()).score("nobody")


def test_a_lazy_frame_comes_back_in_polars() -> None:
    three = _three().drop("ids", "fields").to_arrow()
    lazy = duckdb.sql("select * from three order by rank")
    found = deduplicate(lazy).frame
    assert isinstance(found, pl.DataFrame)
    assert found["document"].n_unique() == 2
    assert three.num_rows == 3


def test_ids_and_fields_may_be_structs() -> None:
    rows = pl.DataFrame(
        {
            "query_id": "q",
            "rank": [1, 2],
            "type": "file",
            "ids": [{"file_id": "F1"}, {"file_id": "F1"}],
            "title": ["A", "B"],
        }
    )
    assert deduplicate(rows).frame["rule"].to_list() == [None, "item id"]


def test_the_value_stands_for_its_frame() -> None:
    deduplication = deduplicate(_three())
    assert nw.from_native(deduplication).shape == (3, deduplication.frame.width)
    assert pl.DataFrame(deduplication).equals(deduplication.frame)


def test_the_results_given_are_not_changed() -> None:
    rows = _three()
    before = rows.clone()
    deduplicate(rows)
    assert rows.equals(before)


# Runs: doc_ids are all there is.


def test_a_run_is_trusted() -> None:
    run = pl.DataFrame(
        {"query_id": "q", "iteration": [1, 1, 2, 3], "doc_id": ["a", "A", "a", "-"], "rank": [1, 2, 1, 0]}
    )
    found = deduplicate(run).frame
    assert found["document"].to_list() == ["a", "A", "a", None]
    assert found["duplicate_of"].to_list() == [None, None, 0, None]
    assert found["rule"].to_list() == [None, None, "trusted", None]


def test_a_run_without_rank_says_with_its_doc_id_that_nothing_was_found() -> None:
    run = pl.DataFrame({"query_id": "q", "iteration": [1, 2, 3], "doc_id": ["a", None, "-"]})
    assert deduplicate(run).frame["document"].to_list() == ["a", None, None]


# Several systems and queries.


def _two_systems() -> pl.DataFrame:
    a, b = _three().with_columns(system=pl.lit("a")), _three().with_columns(system=pl.lit("b"))
    return pl.concat([a, b])


def test_systems_share_their_documents_and_repeat_only_themselves() -> None:
    found = deduplicate(_two_systems()).frame
    assert found["document"].to_list() == [_URL, "https://example.org/b", _URL] * 2
    assert found["duplicate_of"].to_list() == [None, None, 0, None, None, 3]


def test_systems_can_be_kept_apart() -> None:
    rows = pl.concat([
        frame([result(title="River levels", snippet=EN)]).with_columns(system=pl.lit("a")),
        frame([result(title="River levels", snippet=EN, url=_URL)]).with_columns(system=pl.lit("b")),
    ], how="diagonal")  # fmt: skip
    assert deduplicate(rows).frame["document"].n_unique() == 1
    assert deduplicate(rows, across=()).frame["document"].n_unique() == 2


def test_queries_are_apart_unless_joined() -> None:
    one = result(type="event", title="A meeting of all", start="2024-05-06T09:00:00Z", end="2024-05-06T10:00:00Z")
    rows = pl.concat([frame([one], "q1"), frame([one | {"doc_id": "7"}], "q2")], how="diagonal")
    assert deduplicate(rows).summary.documents == 2
    assert deduplicate(rows, across=("query_id", "system")).summary.documents == 1


def test_a_name_does_not_depend_on_which_other_queries_are_there() -> None:
    one = frame([result(title="River levels", snippet=EN)], "q1")
    other = frame([result(type="email", title="x", sender="a@example.org", recipients="b@example.org")], "q2")
    assert (
        deduplicate(one).frame["document"][0]
        == deduplicate(pl.concat([other, one], how="diagonal")).frame["document"][1]
    )


def test_no_field_of_a_type_bears_the_name_of_a_column_of_ours() -> None:
    taken = set(deduplicate(frame([result(url=_URL)]))._records.frame.columns)
    assert not taken & USED_NAMES


# Summary, explanation, score.


def test_an_explanation_names_group_rule_fields_and_confidence() -> None:
    deduplication = deduplicate(_three())
    explanation = deduplication.explain(_URL)
    assert explanation.results["row"].to_list() == [0, 2]
    assert explanation.pairs.to_dicts() == [
        {"query_id": "q", "row": 0, "other_row": 2, "same": True, "rule": "url", "confidence": 2.0, "type": "generic",
         "agreed": ["url"], "differed": []}
    ]  # fmt: skip
    assert "rows 0 and 2 of query q: same (2) by url" in str(explanation)


def test_an_explanation_says_why_two_are_not_one() -> None:
    explanation = deduplicate(_three()).explain(_URL, "https://example.org/b")
    assert explanation.pairs["rule"].unique().to_list() == ["url"]
    assert not explanation.pairs["same"].any()


def test_a_document_that_is_not_there_cannot_be_explained() -> None:
    with pytest.raises(InputError, match="the results have no document 'x'"):
        deduplicate(_three()).explain("x")
    with pytest.raises(InputError, match="the results in query q have no document 'x'"):
        deduplicate(_three()).explain("x", query_id="q")


def test_the_score_agrees_with_counting_by_hand() -> None:
    rows = frame([result(url=f"https://example.org/{page}") for page in "aabbc"])
    agreement = deduplicate(rows).score([1, 1, 1, 2, 2])
    # Found: aa, bb. Given: 3 pairs of the first, 1 of the second. Right: aa.
    assert (agreement.precision, agreement.recall) == (1 / 2, 1 / 4)
    assert agreement.f1 == pytest.approx(1 / 3)
    assert agreement.bcubed_precision == pytest.approx((1 + 1 + 1 / 2 + 1 / 2 + 1) / 5)
    assert agreement.bcubed_recall == pytest.approx((2 / 3 + 2 / 3 + 1 / 3 + 1 / 2 + 1 / 2) / 5)


@pytest.mark.parametrize(
    ("gold", "precision", "recall", "f1"),
    [([1, 1, 2, 2, 3], 1, 1, 1), ([1, 1, 3, 2, 2], 1 / 2, 1 / 2, 1 / 2), ([1, 2, 3, 4, 1], 0, 0, 0)],
)
def test_a_score_whose_precision_and_recall_are_alike_is_their_f1(
    gold: list[int], precision: float, recall: float, f1: float
) -> None:
    rows = frame([result(url=f"https://example.org/{page}") for page in "aabbc"])
    agreement = deduplicate(rows).score(gold)
    assert (agreement.precision, agreement.recall, agreement.f1) == (precision, recall, f1)


def test_rows_without_gold_group_are_not_counted() -> None:
    rows = frame([result(url=_URL), result(url=_URL), result(url=_URL)])
    assert deduplicate(rows).score([1, None, 1]).results == 2
    with pytest.raises(InputError, match="one for each row"):
        deduplicate(rows).score([1])


# Bounds.


def test_a_site_of_one_title_costs_no_more_than_its_pages() -> None:
    rows = frame(
        [
            result(url=f"https://example.org/{n}", title="The title of the site", snippet=f"text {n}")
            for n in range(10_000)
        ]
    )
    deduplication = deduplicate(rows)
    assert deduplication.summary.documents == 10_000
    assert deduplication.summary.pairs == 0
    assert not deduplication.summary.skipped


def test_what_the_bound_leaves_out_is_said() -> None:
    rows = frame([result(title="The title of all of them", snippet=f"text number {n} " * 10) for n in range(1_000)])
    with pytest.warns(GoodgainNotice, match="left pairs uncompared"):
        deduplication = deduplicate(rows)
    assert deduplication.summary.pairs <= 10_000
    (cut,) = deduplication.summary.skipped
    assert (cut.kind, cut.buckets, cut.pairs) == ("title", 1, 1_000 * 999 // 2 - deduplication.summary.pairs)


@pytest.mark.parametrize(("most", "groups"), [(9, 1), (10, 0)])
def test_a_group_with_more_pairs_than_the_bound_is_said(most: int, groups: int) -> None:
    rows = frame([result(url="https://example.org/a", author=f"author {n}", snippet=f"text {n}") for n in range(5)])
    told = pytest.warns(GoodgainNotice, match="left pairs uncompared") if groups else contextlib.nullcontext()
    with told:
        skipped = deduplicate(rows, pairs_a_key=most).summary.skipped
    assert [(cut.buckets, cut.pairs) for cut in skipped if cut.kind == "group"] == [(1, 10)] * groups


def test_repeats_are_found_in_a_bucket_that_is_cut() -> None:
    urls = [f"https://example.org/item?id={n}" for n in range(300)]
    rows = frame([result(url=url + name, snippet=f"{url} {name}") for url in urls for name in ("", "&x=1", "#top")])
    with pytest.warns(GoodgainNotice):
        deduplication = deduplicate(rows, pairs_a_key=1_000)
    # The parameter x decides nothing and nothing else agrees; #top is the page.
    assert deduplication.summary.documents == 600


def test_the_command_writes_nothing_if_the_document_to_explain_does_not_exist(tmp_path: Path) -> None:
    results = ROOT / "qrels_examples" / "lost_documents" / "results.jsonl"
    done = run_command("dedup", results, "-o", tmp_path / "d.jsonl", "--explain", "NOPE")
    assert done.returncode == 2 and "NOPE" in done.stderr
    assert not (tmp_path / "d.jsonl").exists()
