"""Measures of nuggets against their definitions; tables of nuggets and autonuggetizer's files."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import ir_measures
import polars as pl
import pytest

import goodgain as gg
from goodgain.measures.names import parse_measure
from tests.measures.test_session_measures import random_searches
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.tables import frame_of

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
Row = tuple[str, str, str, float, int]  # query, nugget, document, grade, vital
COLUMNS = ["query_id", "nugget_id", "doc_id", "grade", "vital"]


def make_table(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def wanted(name: str, rows: list[Row], query: str, searches: list[list[str]], rel: float) -> float | None:
    seen = {doc for documents in searches for doc in documents}
    values, coverages = [], []
    for nugget in {row[1] for row in rows if row[0] == query}:
        of = [row for row in rows if row[:2] == (query, nugget)]
        if "vital" in name and not any(row[4] for row in of):
            continue
        supporting = {row[2] for row in of if row[3] >= rel}
        values.append((bool(supporting), bool(supporting & seen)))
        if supporting:
            coverages.append(min(len(supporting & seen), 3) / min(len(supporting), 3))

    if not any(supported for supported, _ in values):
        return None
    return sum(coverages) / len(coverages) if "Coverage" in name else sum(found for _, found in values) / len(values)


def test_values_are_those_of_the_definitions() -> None:
    random = Random(4)
    for _ in range(how_many(3, full=12)):
        searched = random_searches(random)
        rows = [
            (query, f"n{n}", doc, random.choice((-1.0, 0, 0, 1, 2)), int(n == 0 or (n == 1 and doc == "a")))
            for query in "pqrstu"
            for n in range(random.randint(1, 4))
            for doc in random.sample("abcdefgh", random.randint(1, 6))
        ]
        qrels = gg.read_qrels(make_table(rows), labels="subtopic")

        for name, rel in (
            ("NuggetRecall", 1),
            ("NuggetRecall(rel=2)", 2),
            ("NuggetRecall(vital=True)", 1),
            ("NuggetCoverage", 1),
        ):
            for at in (None, 1, 2, 9):
                asked = name + (f"@{at}" if at else "")
                for query, _, value in gg.evaluate(qrels, frame_of(searched), asked).per_query.iter_rows():
                    expected = wanted(name, rows, query, searched.get(query, [])[:at], rel)
                    assert value == (None if expected is None else pytest.approx(expected)), (asked, query)


def wanted_score(rows: list[Row], query: str, seen: set[str], of: str, *, strict: bool) -> float | None:
    """As autonuggetizer's calculate_nugget_scores, with the best document seen for the answer."""
    nuggets: dict[str, list[Row]] = {}
    for row in rows:
        if row[0] == query:
            nuggets.setdefault(row[1], []).append(row)
    if not any(
        grade >= 1 for name, of_one in nuggets.items() for *_, grade, _ in of_one if of != "vital" or name == "n0"
    ):
        return None

    vital, okay = [], []
    for name, of_one in nuggets.items():
        best = max((grade for _, _, doc, grade, _ in of_one if doc in seen), default=0)
        credit = 1.0 if best >= 2 else 0.5 if best >= 1 and not strict else 0.0
        (vital if name == "n0" else okay).append(credit)

    if of == "vital":
        return sum(vital) / len(vital)
    weight = 1 if of == "all" else 0.5
    return (sum(vital) + weight * sum(okay)) / (len(vital) + weight * len(okay))


def wanted_gain(rows: list[Row], query: str, seen: set[str], searches: int) -> float | None:
    """As RAVine's evaluator adds up its list of gains."""
    base, used = 0, set[str]()
    for nugget in sorted({row[1] for row in rows if row[0] == query}):
        documents = {row[2] for row in rows if row[:2] == (query, nugget) and row[3] >= 1}
        base += min(len(documents - used), 3)
        used |= documents
    return len(used & seen) / base / searches if used else None


def test_scores_with_half_credit_and_gains_are_those_of_their_tools() -> None:
    random = Random(6)
    for _ in range(how_many(3, full=12)):
        searched = random_searches(random)
        rows = [
            (query, f"n{n}", doc, random.choice((-1.0, 0, 0, 1, 1, 2)), int(n == 0))
            for query in "pqrstu"
            for n in range(random.randint(1, 4))
            for doc in random.sample("abcdefgh", random.randint(1, 6))
        ] + [("u", "n0", "x", 2.0, 1)]
        qrels = gg.read_qrels(make_table(random.sample(rows, len(rows))), labels="subtopic")

        for at in (None, 1, 2, 9):
            names = {
                f"NuggetScore(of='{name}',strict={strict})" + (f"@{at}" if at else ""): (name, strict)
                for name in ("all", "vital", "weighted")
                for strict in (False, True)
            }
            gain = "NuggetGain" + (f"@{at}" if at else "")
            for query, _, value in gg.evaluate(qrels, frame_of(searched), gain).per_query.iter_rows():
                searches = searched.get(query, [])
                seen = {doc for documents in searches[:at] for doc in documents}
                expected = wanted_gain(rows, query, seen, at or len(searches) or 1)
                assert value == (None if expected is None else pytest.approx(expected)), (gain, query)
            for asked, (name, strict) in names.items():
                for query, _, value in gg.evaluate(qrels, frame_of(searched), asked).per_query.iter_rows():
                    seen = {doc for documents in searched.get(query, [])[:at] for doc in documents}
                    expected = wanted_score(rows, query, seen, name, strict=strict)
                    assert value == (None if expected is None else pytest.approx(expected)), (asked, query)


def test_nuggets_that_share_documents_count_in_the_order_of_their_numbers() -> None:
    rows = [("q", "10", doc, 1, 1) for doc in "abcd"] + [("q", "9", doc, 1, 1) for doc in "abcdef"]
    run = frame_of({"q": [["a", "b", "c", "d", "e", "f"]]})
    scores = gg.evaluate(make_table(rows), run, "NuggetGain", labels="subtopic")
    assert scores["NuggetGain"] == 6 / 3  # nugget 9 has all documents, and 3 count


def test_a_scale_without_full_support_is_refused() -> None:
    table = make_table([("q", "1", "a", 1, 1), ("q", "2", "b", 0, 0)])
    run = frame_of({"q": [["a"]]})
    with pytest.raises(gg.InputError, match=r"no grade of the qrels reaches full=2.*write NuggetScore\(full=1\)"):
        gg.evaluate(table, run, "NuggetScore", labels="subtopic")
    assert gg.evaluate(table, run, "NuggetScore(full=1)", labels="subtopic")["NuggetScore(full=1)"] == 0.5
    nothing = make_table([("q", "1", "a", 0, 1)])
    assert gg.evaluate(nothing, run, "NuggetScore", labels="subtopic").means == {"NuggetScore": None}
    with pytest.raises(gg.InputError, match="no column vital"):
        gg.evaluate(table.drop("vital"), run, "NuggetScore(of='weighted',full=1)", labels="subtopic")


def test_nulls_are_left_out_of_the_mean_in_every_door() -> None:
    rows: list[Row] = [("q", "1", "a", 2, 1), ("q", "2", "b", 1, 0), ("r", "1", "a", 0, 1), ("s", "1", "a", 2, 1)]
    qrels, run = gg.read_qrels(make_table(rows), labels="subtopic"), frame_of({"q": [["a"]], "r": [["a"]]})
    scores = gg.evaluate(qrels, run, "NuggetRecall@1 CT@1")
    assert scores["NuggetRecall@1"] == 0.25  # s was not searched, and r has no nugget that a document supports
    assert scores.signature["without_value"] == ["NuggetRecall@1:1"]
    measure = parse_measure("NuggetRecall@1")
    assert ir_measures.calc_aggregate([measure], qrels, gg.read_run(run)) == {measure: 0.25}
    compared = gg.compare(qrels, {"a": run, "b": frame_of({"q": [["a", "b"]]})}, "NuggetRecall@1")
    assert compared.pairs.select("queries", "difference").row(0) == (2, 0.25)


def test_qrels_without_nuggets_or_without_vital_are_refused() -> None:
    run = frame_of({"q": [["a"]]})
    with pytest.raises(gg.InputError, match=r"NuggetRecall: these qrels have no subtopics.*labels='subtopic'"):
        gg.evaluate({"q": {"a": 1}}, run, "NuggetRecall@1")
    table = make_table([("q", "1", "a", 2, 1)]).drop("vital")
    with pytest.raises(gg.InputError, match="no column vital"):
        gg.evaluate(table, run, "NuggetRecall(vital=True)@1", labels="subtopic")
    assert gg.evaluate(table, run, "NuggetRecall@1", labels="subtopic")["NuggetRecall@1"] == 1


def test_tables_in_files_are_read(tmp_path: Path) -> None:
    table = make_table([("q", "1", "a", 2, 1), ("q", "2", "b", 1, 0)])
    table.write_csv(tmp_path / "nuggets.csv")
    table.write_parquet(tmp_path / "nuggets.parquet")
    for file in ("nuggets.csv", "nuggets.parquet"):
        qrels = gg.read_qrels(tmp_path / file, labels="subtopic")
        means = gg.evaluate(qrels, frame_of({"q": [["b"]]}), "NuggetRecall NuggetRecall(vital=True)").mean()
        assert means == {"NuggetRecall": 0.5, "NuggetRecall(vital=True)": 0}


#: What `nuggetizer assign --input-kind retrieval` writes: a record for each query and document.
ASSIGNMENTS = Path(__file__).with_name("assigned.jsonl")


def test_autonuggetizers_assignments_are_read(tmp_path: Path) -> None:
    qrels = gg.read_qrels(ASSIGNMENTS, labels="subtopic")
    assert sorted(qrels.rows.select("query_id", "iteration", "doc_id", "relevance").rows()) == [
        ("q1", "it has B", "d1", 0),
        ("q1", "it has B", "d2", 2),
        ("q1", "it is A", "d1", 2),
        ("q1", "it is A", "d2", 1),
    ]
    assert qrels.vital is not None and qrels.vital.rows() == [("q1", "it is A")] and qrels.name == "assigned"
    (tmp_path / "agent.run").write_text("q1 1 d1 1 1 t\nq1 2 d2 1 1 t\n")
    measures = "NuggetRecall@1 NuggetRecall(rel=2)@2"
    done = run_command("evaluate", ASSIGNMENTS, tmp_path / "agent.run", measures, "--labels", "subtopic", "-o", "jsonl")
    assert [json.loads(line)["value"] for line in done.stdout.splitlines()] == [0.5, 1.0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nuggets": [{"text": "A", "assignment": "maybe"}]}, "line 2: a nugget needs a text, and one of support"),
        ({"nuggets": None}, "line 2: is not a record of assignments"),
        ({"nuggets": ["A"]}, "line 2: a nugget needs a text"),
        ({"docid": None, "candidate_text": None, "answer_text": "A"}, "to an answer, not to a document"),
    ],
)
def test_faults_are_said(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    first, second = map(json.loads, ASSIGNMENTS.read_text().splitlines())
    changed = {name: value for name, value in (second | changes).items() if value is not None or name == "nuggets"}
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(first)}\n{json.dumps(changed)}\n")
    with pytest.raises(gg.InputError, match=message):
        gg.read_qrels(tmp_path / "a.jsonl", labels="subtopic")


def test_the_digest_of_qrels_says_which_nuggets_are_vital() -> None:
    rows = {"query_id": ["q", "q"], "nugget_id": ["n", "m"], "doc_id": ["a", "b"], "grade": [1, 1]}
    one, same, other = (
        gg.read_qrels(pl.DataFrame(rows | {"vital": vital}), labels="subtopic").digest
        for vital in ([1, 0], [1, 0], [1, 1])
    )
    assert one == same != other


def test_three_documents_of_a_nugget_are_enough() -> None:
    rows = {"query_id": "q", "nugget_id": "n", "doc_id": [*"abcd"], "grade": 3, "vital": 1}
    qrels = gg.read_qrels(pl.DataFrame(rows), labels="subtopic")
    for seen, value in (("a", 1 / 3), ("abc", 1.0), ("abcd", 1.0)):
        run = pl.DataFrame({"query_id": "q", "iteration": 1, "doc_id": [*seen]})
        assert gg.evaluate(qrels, run, "NuggetCoverage@1")["NuggetCoverage@1"] == pytest.approx(value)
