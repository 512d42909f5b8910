"""The compiled loop over plain text says what the readers say, or says that it is not for it to say."""

from __future__ import annotations

from pathlib import Path
from random import Random

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.batches.query_batches import _rank_documents
from goodgain.batches.run_file import Block, RunFile
from goodgain.batches.text_counting import Scan, index_judgments, scan_text
from goodgain.batches.text_ranking import tabulate_scan
from goodgain.batches.whole_query_blocks import TextBlock
from goodgain.counting.ledger import tally
from goodgain.ranking.flattening import Ranking, rank_run
from goodgain.ranking.ranking_table import number_judgments, tabulate_ranking
from tests.support.counts import how_many
from tests.support.tables import no_notices

RELS = (1.8, 2.0)
QRELS = gg.read_qrels({f"q{k}": {f"d{n}": (n * 7 + k) % 5 - 1 for n in range(k, k + 6)} for k in range(0, 12, 2)})
PIECES = [
    b" ",
    b"\t",
    b"\n",
    b"\r\n",
    b"-",
    b"+",
    b".",
    b"e5",
    b"1e999",
    b"nan",
    b"0",
    b"99999999999999999",
    b"  ",
    b"1.5",
]
PIECES += [
    b"Q0",
    b"q1",
    b"d\xc3\xa9",
    b"\xff",
    b"\0",
    b"\x0b",
    b"\xef\xbb\xbf",
    b"other",
    b'"',
    b"#",
    b"_1",
    b"1_0",
    b"0x1",
]
PIECES += [b"\xc2\xa0"]


def lines(random: Random) -> list[bytes]:
    """Lines of a small run: queries together, in order or not, with words, empty iterations and scores of any form."""
    made = []
    for query in random.sample(range(12), random.randint(1, 6)):
        word = random.choice([None, None, b"Q0", b"-1", b"x"])
        rows = []
        for iteration in range(random.randint(0, 1), random.randint(1, 4)):
            count = random.randint(0, 4)
            number = word or str(iteration).encode()
            for rank in range(1, count + 1):
                score = random.choice(
                    [b"1.0", b"-3", b"%d" % (9 - rank), b"1e2", b".5", b"+7.", b"0.12345678901234567"]
                )
                rows.append([b"q%d" % query, number, b"d%d" % random.randint(0, 14), b"%d" % rank, score, b"t"])
            if not count or not random.randint(0, 5):
                rows.append([b"q%d" % query, number, b"-", b"0", b"0", b"t"])
        if not random.randint(0, 3):
            random.shuffle(rows)
        made += rows
    return [b" ".join(row) + b"\n" for row in made]


def mutated(text: bytes, random: Random) -> bytes:
    for _ in range(random.choice([0, 0, 1, 1, 2])):
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice(PIECES) + text[at + random.choice([0, 0, 1, 3]) :]
    return text


def compared(text: bytes, qrels: gg.Qrels = QRELS) -> bool:
    """Whether the loop took the text; it must then agree with the readers in all it says."""
    scan = scan_text(text, index_judgments(qrels.frame), rels=RELS, first=1, with_ranking=True)
    if scan is None:
        return False
    file = RunFile(Path("agent.run"), "close", 1, is_text=True)
    with no_notices():
        run = Block(
            file, text=TextBlock(file.path, 0, len(text), text)
        ).run  # raises where a line is bad: then the loop was wrong to take it
    assert scan.has_numbers == run.has_iterations
    key = ["query_id", "iteration"]
    found, wanted = scan.tally, tally(run.frame, qrels.frame, rels=RELS, labels=None)
    assert_frame_equal(found.select(wanted.columns).sort(key).fill_null(0), wanted.sort(key).fill_null(0))
    unranked = scan_text(text, index_judgments(qrels.frame), rels=RELS, first=1)
    assert unranked is not None
    assert_frame_equal(unranked.tally, scan.tally)
    if scan.firsts is not None:
        ranking, contradicting = _rank_documents(scan, scan.firsts)
        here = rank_run(run.frame, order="seen")
        assert_frame_equal(ranking, here.ranking.select("query_id", "doc_id", "score"))
        assert contradicting == here.contradicting
        same_ranking_table(scan, here, qrels)
        same_firsts(scan, qrels)
    return True


def same_ranking_table(scan: Scan, here: Ranking, qrels: gg.Qrels) -> None:
    """Positions and labels from the loop are those of the ranking that the readers make."""
    assert scan.firsts is not None
    judgments = number_judgments(qrels.frame)
    there, contradicting = tabulate_scan(scan, scan.firsts, judgments, positions=["k_id", "k_gdeval"])
    wanted = tabulate_ranking(here.ranking, judgments, positions=["k_id", "k_gdeval"])
    for of_ties in ("k_id", "k_gdeval"):
        found, right = (_with_position(table.rows, of_ties).sort("query", "k") for table in (there, wanted))
        assert_frame_equal(found, right)
    assert_frame_equal(there.retrieved.sort("query"), wanted.retrieved.sort("query"))
    assert contradicting == here.contradicting


def _with_position(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """A position that the table does not have is the same as k."""
    return rows.select("query", "k", pl.col(name if name in rows.columns else "k").alias(name), "relevance")


def same_firsts(scan: Scan, qrels: gg.Qrels) -> None:
    """Documents and labels of first occurrences, for all and for a few, are those of a look-up in Python."""
    assert scan.firsts is not None
    rows = [line.split() for line in bytes(scan.text).split(b"\n")]
    labels = {(r["query_id"], r["doc_id"]): r["relevance"] for r in qrels.frame.iter_rows(named=True)}
    first: dict[tuple[str, str], int] = {}  # in reading order: the rows of each query are together
    for number, row in enumerate(rows):
        if row and row[2] != b"-":
            first.setdefault((row[0].decode(), row[2].decode()), number)
    query_ids = scan.queries.get_column("query_id").gather(scan.firsts.get_column("query"))
    found = zip(query_ids, scan.read_doc_ids(scan.firsts), strict=True)
    assert [*zip(found, scan.firsts.get_column("row"), strict=True)] == [*first.items()]
    assert scan.firsts.get_column("relevance").to_list() == [labels.get(pair) for pair in first]
    assert scan.read_doc_ids(scan.firsts[::3]).to_list() == [doc_id for _, doc_id in first][::3]
    assert scan.firsts.get_column("score").to_list() == [float(rows[number][4]) for number in first.values()]


TEXTS = how_many(40, full=100)


@pytest.mark.parametrize("start", range(0, how_many(40, full=1_200), TEXTS))
def test_mutated_texts_are_refused_or_counted_as_the_readers_count_them(start: int) -> None:
    taken = sum(
        compared(mutated(b"".join(lines(Random(seed))) or b"\n", Random(-seed))) for seed in range(start, start + TEXTS)
    )
    assert TEXTS // 5 < taken < TEXTS  # neither is always so


def test_a_query_with_more_documents_than_there_is_room_for_is_read_again() -> None:
    text = b"".join(b"q0 %d d%d %d 1 t\n" % (1 + n // 3_000, n % 4_000, 1 + n % 3_000) for n in range(9_000))
    assert compared(text)
    many = gg.read_qrels({"q0": {f"d{n}": n % 4 for n in range(9_000)}, "q1": {"d1": 3}})
    assert compared(text + b"q1 1 d1 1 1 t\n", many)


def test_ids_that_begin_or_end_alike_are_told_apart() -> None:
    documents = [
        "d",
        "dd",
        "ddddddddd",
        "dddddddd",
        "dddddddddd",
        "d" * 100,
        "d" * 99 + "e",
        "e" + "d" * 99,
        "é",
        "e\u0301",
    ]
    text = "".join(
        f"{query} 1 {doc} {rank} 1 t\n" for query in ("q", "qq", "é") for rank, doc in enumerate(documents, 1)
    )
    qrels = gg.read_qrels({"qq": dict.fromkeys(documents[::2], 3), "é": {"é": 2, "d": 1}, "qqq": {"d": 3}})
    assert compared(text.encode(), qrels)


@pytest.mark.parametrize(
    "text",
    [b"", b"\n", b"q", b"q 1 d 1 1", b"q 1 d 1 1 ", b" q 1 d 1 1 t", b"q 1 d 1 1 t ", b"q +1 d 1 1 t", b"q -0 d 1 1 t"],
)
def test_what_is_no_plain_line_is_refused(text: bytes) -> None:
    found = scan_text(text, index_judgments(QRELS.frame), rels=RELS, first=1)
    assert found is None or found.queries.is_empty()


def test_ids_of_a_million_bytes() -> None:
    query, doc = "q" * 2**20, "d" * 2**20
    text = f"{query} 1 {doc} 1 2 t\n{query} 1 {doc}e 2 1 t\n{query}x 1 {doc} 1 1 t\n"
    assert compared(text.encode(), gg.read_qrels({query: {doc: 3, f"{doc}e": 2}, "q": {doc: 2}}))


def test_a_last_line_without_an_end_is_a_line() -> None:
    assert compared(b"q0 1 d1 1 1 t")


def test_qrels_in_any_order_of_queries_give_the_same() -> None:
    shuffled = gg.read_qrels(QRELS.frame.sample(fraction=1, shuffle=True, seed=2).select(pl.exclude("iteration")))
    assert compared(b"".join(lines(Random(4))), shuffled)


def test_scores_are_the_floats_nearest_to_their_decimals() -> None:
    random = Random(15)
    scores = ["0.1", "-0", "+.5", "7.", "123456789012345e22", "999999999999999e-22", "1e23", "9007199254740993", "4.35"]
    for _ in range(how_many(200, full=5_000)):
        digits = str(random.randint(0, 10 ** random.randint(1, 18)))
        point = random.randint(0, len(digits))
        power = random.choice(["", f"e{random.randint(-25, 25)}"])
        scores.append(f"{random.choice(['', '-'])}{digits[:point]}.{digits[point:]}{power}")
    judgments = index_judgments(QRELS.frame)
    for score in scores:  # one by one: Polars reads all scores of a text that has one the loop does not read
        scan = scan_text(f"q 1 d 1 {score} t\n".encode(), judgments, rels=RELS, first=1, with_ranking=True)
        assert scan is not None and scan.firsts is not None
        assert scan.firsts.item(0, "score") == float(score)
