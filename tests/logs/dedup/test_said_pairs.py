"""What a person says is kept before all rules: two names are one document, or they never are, not even through others."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.dedup import deduplicate
from tests.logs.dedup.writing import EN, OTHER, Result, frame, result
from tests.support.counts import how_many

A, B, C = (f"https://{host}.example/page" for host in "abc")
TITLE = "The river levels of the year"


def _documents(*rows: Result, **options: Any) -> list[str]:
    return deduplicate(frame(rows), **options).frame["document"].to_list()


# What holds of the groups


def test_same_joins_what_the_rules_prove_different_and_says_so() -> None:
    found = deduplicate(frame([result(url=A), result(url=B), result(url=C)]), same=[(B, A)])
    assert found.frame["document"].to_list() == [A, A, C]
    assert found.frame["rule"].to_list() == [None, "said by same=", None]
    assert "same (5), said by same=" in str(found.explain(A))
    assert found.summary.same == {"said by same=": 1}


def test_a_pair_that_a_rule_joins_too_is_shown_and_counted_once() -> None:
    found = deduplicate(
        frame([result(url=A, doc_id="d1"), result(url=A, doc_id="d2", snippet=EN)]), same=[("d2", "d1")]
    )
    assert found.summary.same == {"said by same=": 1}
    assert found.explain(found.frame["document"][0]).pairs["rule"].to_list() == ["said by same="]


def test_different_separates_what_the_rules_join_and_says_so(tmp_path: Path) -> None:
    file = tmp_path / "apart.txt"
    file.write_text("d1 d2")
    rows = [result(url=A, doc_id="d1"), result(url=A, doc_id="d2", snippet=EN)]
    assert len(set(_documents(*rows))) == 1
    found = deduplicate(frame(rows), different=file)
    one, two = found.frame["document"].to_list()
    assert one != two
    assert found.explain(one, two).pairs["rule"].to_list() == [f"said by {file}"]
    assert found.summary.different == {f"said by {file}": 1}


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")  # of the name that does not occur
def test_same_is_transitive_also_through_a_name_that_a_query_lacks() -> None:
    assert len(set(_documents(result(url=A), result(url=C), same=[(A, B), (B, C)]))) == 1


def test_two_spellings_of_one_url_are_joined_where_a_policy_would_not() -> None:
    rows, spelled = [result(url=A, title=TITLE), result(url=A, title="Lakes")], "http://www.a.example/page"
    assert len(set(_documents(*rows, policy="strict"))) == 2
    assert len(set(_documents(*rows, policy="strict", same=[(A, spelled)]))) == 1


def test_same_joins_whole_groups() -> None:
    rows = [result(url=A, title=TITLE, snippet=EN), result(title=TITLE, snippet=EN, doc_id="x"), result(url=B)]
    assert len(set(_documents(*rows, same=[(A, B)]))) == 1


def test_two_said_to_be_different_do_not_meet_through_a_third_whose_weaker_join_is_refused() -> None:
    between = result(title=TITLE, snippet=EN, url="http://www.a.example/page/")
    rows = [result(url=A), between, result(title=TITLE, snippet=EN, doc_id="x")]
    assert len(set(_documents(*rows))) == 1
    found = deduplicate(frame(rows), different=[("x", A)])
    one, two, three = found.frame["document"].to_list()
    assert one == two != three
    assert found.summary.different == {"said by different=": 1}


@pytest.mark.parametrize("same", [[(A, B)], [(A, C), (C, B)]])
def test_same_that_forces_different_together_is_an_error_with_both_places(same: list[tuple[str, str]]) -> None:
    last = f"pair {len(same)} of same="
    with pytest.raises(InputError, match=f"pair 1 of different= says that {B} and {A} are different, but {last}"):
        _documents(result(url=A), same=same, different=[(B, A)])


def test_one_result_with_two_names_cannot_be_two_documents() -> None:
    with pytest.raises(InputError, match=f"pair 1 of different=: d1 and {A} name one result"):
        _documents(result(url=A, doc_id="d1"), different=[("d1", A)])
    with pytest.raises(InputError, match="are one name"):
        _documents(result(url=A), different=[(A, "http://www.a.example/page?utm_source=x")])


def test_names_are_compared_as_results_are() -> None:
    odd = ["HTTP://WWW.A.example:80/page/?utm_source=x#part", "9F1C2E00-0000-4000-8000-00000000000A"]
    rows = [result(url=A), result(doc_id=odd[1].lower()), result(type="file", ids={"file_id": "F1"}), result(url=C)]
    assert len(set(_documents(*rows, same=[odd, (odd[1], "F1")]))) == 2
    assert _documents(result(doc_id="n#1"), result(doc_id="n#2"), result(doc_id="z"), same=[("n#1", "z")]) == [
        "n#1",
        "n#2",
        "n#1",
    ]
    (text,) = _documents(result(title=TITLE, snippet=EN))
    assert len(set(_documents(result(title=TITLE, snippet=EN), result(url=A), same=[(text, A)]))) == 1


def test_a_run_whose_doc_ids_are_trusted_keeps_to_it_too() -> None:
    run = pl.DataFrame({"query_id": "q", "doc_id": ["d1", "d2", "http://www.a.example/page", "d3"]})
    assert deduplicate(run, same=[("d2", "d1"), (A, "d3")]).frame["document"].n_unique() == 2


@pytest.mark.parametrize("shared", ["1", "https://mail.example/"])
def test_a_name_of_several_documents_names_none_of_them(shared: str) -> None:
    rows = [result(doc_id="1", url=A), result(doc_id="1", url=B), result(url=C)]
    rows += [result(type="email", url="https://mail.example/", subject=one, snippet=one) for one in (EN, OTHER)]
    with pytest.warns(GoodgainNotice, match=r"same=: 1 of 2 names occur in no result, or stand for several documents"):
        assert len(set(_documents(*rows, same=[(shared, C)]))) == 5


def test_a_doc_id_names_one_page_with_several_snippets_and_passages_of_one_text() -> None:
    """And names nothing where passages of a document share it: each is a document of its own."""
    page = [result(doc_id="1", url=A, snippet=text) for text in (EN, OTHER)]
    assert len(set(_documents(*page, result(url=C), same=[("1", C)]))) == 1
    once = [result(type="passage", doc_id="1", snippet=EN) for _ in range(2)]
    assert len(set(_documents(*once, result(url=C), same=[("1", C)]))) == 1
    twice = [result(type="passage", doc_id="1", snippet=text) for text in (EN, OTHER)]
    with pytest.warns(GoodgainNotice, match=r"same=: 1 of 2 names occur in no result, or stand for several documents"):
        assert len(set(_documents(*twice, result(url=C), same=[("1", C)]))) == 3


# Files


def test_a_file_has_two_names_a_line_with_comments_and_blank_lines(tmp_path: Path) -> None:
    file = tmp_path / "same.txt"
    file.write_text(f"# checked by hand\n\n  # again\n{A}\t{B}  # a mirror\n")
    assert len(set(_documents(result(url=A), result(url=B), same=file))) == 1


@pytest.mark.parametrize(
    ("line", "wrong"), [(b"a", "has 1 name;"), (b"a b c", "has 3 names;"), (b"\xff a", "is not UTF-8")]
)
def test_an_error_in_a_file_names_the_line(tmp_path: Path, line: bytes, wrong: str) -> None:
    file = tmp_path / "same.txt"
    file.write_bytes(b"# names\n" + line)
    with pytest.raises(InputError, match=f"same.txt, line 2: {wrong}"):
        _documents(result(url=A), same=file)


@pytest.mark.parametrize("pairs", [["ab"], [("a", "b", "c")], [("a", 1)], [("a", "")], [1]])
def test_a_list_holds_pairs_of_texts(pairs: Any) -> None:
    with pytest.raises(InputError, match="as pair 1; give two ids or URLs"):
        _documents(result(url=A), different=pairs)


def test_a_number_is_no_list_of_pairs() -> None:
    with pytest.raises(InputError, match="same= is a int; give a file, or pairs of two ids or URLs"):
        _documents(result(url=A), same=5)


def test_names_that_no_result_has_are_counted() -> None:
    with pytest.warns(GoodgainNotice, match=r"same=: 2 of 3 names occur in no result.*\(first: x\)"):
        _documents(result(url=A), same=[(A, "x"), ("y", A)])


# Earlier documents


def _known() -> pl.DataFrame:
    found: pl.DataFrame = deduplicate(
        frame([result(url=A), result(url=A, snippet=EN, doc_id="d"), result(url=B)])
    ).frame
    return found


def test_a_new_result_joins_the_earlier_document_that_a_person_names() -> None:
    new = frame([result(url=C), result(url="http://c.example/page", title=TITLE)])
    assert deduplicate(new, earlier=_known(), same=[(C, B)]).frame["document"].to_list() == [B, B]
    # It would join A by its URL, but a person comes first.
    new = frame([result(url="http://a.example/page", doc_id="n"), result(url=C)])
    with pytest.warns(GoodgainNotice, match="1 conflict with earlier documents"):
        assert deduplicate(new, earlier=_known(), same=[("n", B), (C, "n")]).frame["document"].to_list() == [B, B]


def test_a_new_result_leaves_the_earlier_document_that_a_person_says_it_is_not() -> None:
    new = frame([result(url="http://a.example/page", doc_id="n")])
    assert deduplicate(new, earlier=_known()).frame["document"].to_list() == [A]
    (document,) = deduplicate(new, earlier=_known(), different=[("n", "d")]).frame["document"].to_list()
    assert document not in (A, B)


def test_earlier_documents_are_neither_merged_nor_divided() -> None:
    new = frame([result(url=C)])
    with pytest.raises(
        InputError, match=r"pair 1 of same=: joins the earlier documents .*remove the pair, or convert all"
    ):
        deduplicate(new, earlier=_known(), same=[(B, A)])
    with pytest.raises(InputError, match=r"pair 2 of same=: joins the earlier documents"):
        deduplicate(new, earlier=_known(), same=[(C, A), (C, B)])
    one = _known().with_columns(document=pl.lit("one"))
    with pytest.raises(
        InputError, match=rf"pair 1 of different=: {A} and {B} are in the earlier document one\. Earlier"
    ):
        deduplicate(new, earlier=one, different=[(A, B)])


# Any results and any pairs


def _components(links: list[set[Any]], members: list[Any]) -> list[set[Any]]:
    """Union-find, in the plainest way: sets that meet become one."""
    groups: list[set[Any]] = [{member} for member in members]
    for link in links:
        met = [group for group in groups if group & link]
        groups = [group for group in groups if not group & link] + [set().union(*met)] if met else groups
    return groups


def _spell(rng: random.Random, page: int) -> str:
    host = rng.choice(["", "www.", "m."])
    return f"{rng.choice(['http', 'https'])}://{host}s{page}.example/p{rng.choice(['', '/', '?utm_source=x', '#x'])}"


class _Case:
    """Random results, and random pairs of their names: doc_ids (texts) and pages (numbers), spelled in many ways."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        rows, self.names = [], []
        for number in range(rng.randrange(3, 15)):
            page = rng.randrange(5)
            url = _spell(rng, page) if rng.random() < 0.8 else None
            text = {"title": rng.choice([TITLE, "Another title of some length"]), "snippet": rng.choice([EN, OTHER])}
            rows.append(result(url=url, doc_id=f"d{number}", **(text if url is None or rng.random() < 0.5 else {})))
            self.names.append({f"d{number}", *([page] if url else [])})
        self.queries = [rng.randrange(2) for _ in rows]
        query_ids = pl.Series([f"q{query}" for query in self.queries])
        self.results = frame(rows).with_columns(query_id=query_ids, row=pl.int_range(pl.len()))
        self.is_earlier = [rng.random() < 0.5 for _ in rows]
        known = [f"d{number}" for number in range(len(rows))] + list(range(7))
        same, different = ([(rng.choice(known), rng.choice(known)) for _ in range(rng.randrange(4))] for _ in "ab")
        self.options: dict[str, Any] = {
            option: [[one if isinstance(one, str) else _spell(rng, one) for one in pair] for pair in pairs]
            for option, pairs in (("same", same), ("different", different))
        }
        # By hand: names that are the same are one class; a query's rows with several names of a class are one cluster.
        classes = _components([set(pair) for pair in same], known)
        head = {name: place for place, group in enumerate(classes) for name in group}
        self.apart = [(head[one], head[two]) for one, two in different]
        self.classes = [{head[name] for name in names} for names in self.names]
        self._all_classes = classes

    def find_clusters(self, rows: list[int]) -> list[set[int]]:
        links = []
        for query, place in itertools.product(range(2), range(len(self._all_classes))):
            members = {row for row in rows if self.queries[row] == query and place in self.classes[row]}
            if len({name for row in members for name in self.names[row]} & self._all_classes[place]) > 1:
                links.append(members)
        return _components(links, rows)

    def holds(self, groups: list[set[int]]) -> bool:
        """Whether no name, and no group, is on both sides of a pair that is different."""
        sets = [set().union(*(self.classes[row] for row in group)) for group in groups]
        return not any(one == two or any({one, two} <= held for held in sets) for one, two in self.apart)


def _list_groups(found: pl.DataFrame) -> list[set[int]]:
    return [set(rows) for rows in found.group_by("query_id", "document").agg("row")["row"].to_list()]


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_any_groups_respect_all_pairs_and_are_those_of_union_find_without_a_conflict() -> None:
    outcomes = {"error": 0, "refused": 0, "union": 0}
    for seed in range(how_many(15, full=75)):
        case = _Case(seed)
        clusters = case.find_clusters(list(range(case.results.height)))
        if not case.holds(clusters):
            with pytest.raises(InputError):
                deduplicate(case.results, **case.options)
            outcomes["error"] += 1
            continue
        groups = _list_groups(deduplicate(case.results, **case.options).frame)
        assert case.holds(groups)
        assert all(any(cluster <= group for group in groups) for cluster in clusters)
        by_rules = _list_groups(deduplicate(case.results).frame)
        union = _components([*by_rules, *clusters], list(range(case.results.height)))
        if case.holds(union):
            assert sorted(map(sorted, groups)) == sorted(map(sorted, union))
        outcomes["union" if case.holds(union) else "refused"] += 1
    assert all(outcomes.values()), outcomes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_any_groups_with_earlier_documents_respect_all_pairs_too() -> None:
    outcomes = {"error": 0, "kept": 0}
    for seed in range(how_many(15, full=75)):
        case = _Case(seed)
        old = deduplicate(case.results.filter(pl.Series(case.is_earlier))).frame if any(case.is_earlier) else None
        new = case.results.filter(~pl.Series(case.is_earlier))
        if old is None or new.is_empty():
            continue
        queries = set(new["query_id"])
        rows = [row for row, query in enumerate(case.queries) if f"q{query}" in queries]
        frozen = _list_groups(old.filter(pl.col("query_id").is_in(queries)))
        clusters = case.find_clusters(rows)
        whole = _components([*frozen, *clusters], rows)
        if not case.holds(whole) or any(sum(group <= one for group in frozen) > 1 for one in whole):
            with pytest.raises(InputError):
                deduplicate(new, earlier=old, **case.options)
            outcomes["error"] += 1
            continue
        found = deduplicate(new, earlier=old, **case.options).frame
        groups = _list_groups(pl.concat([old.select(found.columns).filter(pl.col("query_id").is_in(queries)), found]))
        assert case.holds(groups)
        assert all(any(cluster <= group for group in groups) for cluster in clusters)
        assert all(any(group <= one for one in groups) for group in frozen)
        outcomes["kept"] += 1
    assert all(outcomes.values()), outcomes


@pytest.mark.slow
def test_the_order_of_rows_and_of_pairs_changes_nothing() -> None:
    rows = [
        result(url=url, title=TITLE, snippet=text, doc_id=f"{place}")
        for place, (url, text) in enumerate(itertools.product([A, B, C, None], [EN, OTHER]))
    ]
    results = frame(rows).with_columns(rank=pl.lit(1), call=pl.int_range(pl.len()))
    said: list[tuple[str, str]] = [("0", "4"), ("6", "2"), ("7", "1")]
    apart = [("0", "7"), (A, "3"), ("6", "5")]
    expected = None
    for seed in range(20):
        rng = random.Random(seed)
        rng.shuffle(said)
        rng.shuffle(apart)
        found = deduplicate(results.sample(fraction=1, shuffle=True, seed=seed), same=said, different=apart)
        documents = found.frame.sort("call")["document"].to_list()
        assert documents == (expected := expected or documents)
