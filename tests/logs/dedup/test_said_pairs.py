"""What a person says is kept before all rules: two names are one document, or they never are, not even through others."""

from __future__ import annotations

import itertools
import random
from typing import Any

import polars as pl
import pytest

from goodgain.errors import InputError
from goodgain.logs.dedup import deduplicate
from tests.logs.dedup.writing import EN, OTHER, frame, result
from tests.support.counts import how_many

A, B, C = (f"https://{host}.example/page" for host in "abc")
TITLE = "The river levels of the year"


def test_a_run_whose_doc_ids_are_trusted_keeps_to_it_too() -> None:
    run = pl.DataFrame({"query_id": "q", "doc_id": ["d1", "d2", "http://www.a.example/page", "d3"]})
    assert deduplicate(run, same=[("d2", "d1"), (A, "d3")]).frame["document"].n_unique() == 2


@pytest.mark.parametrize("other", ["doc?utm_source=x", "doc/", "doc#top"])
def test_ids_that_would_be_one_address_are_two_names(other: str) -> None:
    run = pl.DataFrame({"query_id": "q", "doc_id": ["doc", other, "x", "y"]})
    documents = deduplicate(run, same=[("doc", "x"), (other, "y")]).frame["document"]
    assert documents.to_list() == ["doc", other, "doc", other]


def test_the_name_of_a_text_is_a_name_too() -> None:
    results = frame([result(title=TITLE, snippet=EN), result(url=A, snippet=OTHER)])
    named, page = deduplicate(results).frame["document"]
    assert named.startswith("text:") and page == A
    assert deduplicate(results, same=[(named, A)]).frame["document"].to_list() == [A, A]


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
    return f"{rng.choice(['http', 'https'])}://{host}s{page}.example/p{rng.choice(['', '/', '?utm_source=x', '#top'])}"


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
        deduplication = deduplicate(results.sample(fraction=1, shuffle=True, seed=seed), same=said, different=apart)
        documents = deduplication.frame.sort("call")["document"].to_list()
        assert documents == (expected := expected or documents)
