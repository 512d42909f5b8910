"""An experiment gives what the doors give; its results do not depend on what was asked before, or with other options."""

from __future__ import annotations

import inspect
import pickle
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.analysis.comparing import comparison_question
from goodgain.analysis.reporting import curves
from goodgain.counting import query_batches, run_opening
from goodgain.options import OPTIONS
from goodgain.scoring.kept import MOST_KEPT, KeptResults, make_key
from goodgain.scoring.scoring import DEFAULTS
from goodgain.scoring.system_scores import SystemScores

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

FOLDER = "qrels_examples/two_agents/"
QRELS, COSTS, GROUPS_FILE, OUTCOMES = (
    f"{FOLDER}{name}" for name in ("qrels.txt", "costs.csv", "groups.csv", "outcomes.csv")
)
SYSTEMS = {"quick": f"{FOLDER}quick.run", "late": f"{FOLDER}late.run"}
MEASURES = "nDCG@10 nCG@6 SRR@6 P@5"


def make_runs(
    seed: int, judged: str = "d{}", found: str = "d{}#{}"
) -> tuple[dict[str, dict[str, int]], list[pl.DataFrame]]:
    """Qrels and five runs whose numbers of iterations, ids and labels answer to each option."""
    chosen = random.Random(seed)
    qrels = {
        f"q{q}": {judged.format(d): chosen.choice([0, 0, 1, 2, 3]) for d in chosen.sample(range(20), 12)}
        for q in range(22)
    }
    runs = []

    for _ in range(5):
        rows = [
            (f"q{q}", 2 * i, found.format(chosen.randrange(20), chosen.randrange(2)), float(chosen.random()))
            for q in range(22)
            if chosen.random() > 0.1
            for i in range(1, chosen.randint(2, 5))
            for _ in range(4)
        ]
        frame = pl.DataFrame(rows, schema=["query_id", "step", "doc_id", "score"], orient="row")
        runs.append(frame.unique(["query_id", "step", "doc_id"], maintain_order=True))

    return qrels, runs


def compare_results(found: Any, wanted: Any) -> None:
    """Raise unless two results of one analysis are equal to the last digit."""
    if isinstance(wanted, pl.DataFrame):
        assert_frame_equal(found, wanted, check_exact=True)
    elif isinstance(wanted, gg.Comparison):
        assert found.signature == wanted.signature
        assert set(found.notes) >= set(wanted.notes)
        for name in ("systems", "means", "pairs", "values", "replicates", "noise", "detectable", "flips", "coverage"):
            compare_results(getattr(found, name), getattr(wanted, name))
        for name in ("groups", "correlations", "outcomes"):
            one, other = getattr(found, name), getattr(wanted, name)
            assert (one is None) == (other is None)
            if other is not None:
                compare_results(one, other)
    elif isinstance(wanted, gg.Scores):
        assert found.means == wanted.means and found.signature == wanted.signature and found.rel == wanted.rel
        assert sorted(found.notes) == sorted(wanted.notes)
        assert len(found.replicates) == len(wanted.replicates)
        compare_results(found.per_query, wanted.per_query)
        compare_results(found.coverage, wanted.coverage)
        if wanted.by_group is not None:
            compare_results(found.by_group, wanted.by_group)
    elif isinstance(wanted, gg.Explanation):
        for name in ("queries", "causes", "documents", "iterations", "wasted", "unjudged", "repeats"):
            compare_results(getattr(found, name), getattr(wanted, name))
    else:
        assert found == wanted


def differ(one: Any, other: Any) -> bool:
    if type(one) is not type(other):  # one may be the text of an error
        return True
    try:
        compare_results(one, other)
    except AssertionError:
        return True
    return False


#: Each system was cut off in two queries; `several` has two runs.
BROKE_OFF = pl.DataFrame(
    [(q, *run, 0) for q in ("q1", "q2") for run in (("new", 1), ("third", 1), ("several", 1), ("several", 2))],
    schema=["query_id", "system", "replicate", "completed"],
    orient="row",
)
ANALYSES: dict[str, Callable[[gg.Experiment], Any]] = {
    "evaluate": lambda x: x.evaluate(MEASURES).values,
    "compare": lambda x: x.compare(MEASURES, baseline="new", outcomes=BROKE_OFF),
    "curve": lambda x: x.curve("nCG SRR"),
    "ledger": lambda x: x.ledger("nCG"),
    "coverage": lambda x: x.coverage(),
    "pr_curve": lambda x: x.pr_curve(),
    "explain": lambda x: x.explain("new", "third", "nCG@3"),
    "spend": lambda x: x.spend(),
    "searches": lambda x: x.evaluate("RepeatedQueries").values,
    "area": lambda x: x.evaluate("AreaOver(over='tokens',budget=9)").values,
    "reading": lambda x: x.evaluate("U").values,
}
_PLACES = {"query_id": [f"q{q}" for q in range(22) for _ in range(4)], "iteration": [2, 4, 6, 8] * 22}
#: Tables of the systems of `write_files`.
RESULTS, COSTS_OF_EACH = (
    pl.concat(pl.DataFrame(_PLACES | of).with_columns(system=pl.lit(name)) for name in ("new", "third"))
    for of in ({"search": 1, "rank": 0, "search_query": ["a", "b"] * 44}, {"input_tokens": 4})
)
#: A value for each option that is not its default, and changes something.
OTHERS: dict[str, Any] = {
    "gaps": "empty",
    "first": 0,
    "labels": "iteration",
    "columns": {"step": "iteration", "score": "rank_score"},
    "errors": "skip",
    "only": ["q1", "q2"],
    "page": {"third": 2},
    "documents": r"^(.+)#\d+$",
    "documents_of": "run",
    "chunks": "repeat",
    "leave_out": "own",
    "urls": "keep",
    "rel": 3,
    "order": "interleaved",
    "provider": "pytrec_eval",
    "missing": "absent",
    "no_good": "absent",
    "incomplete": "zero",
    "bounds": True,
    "results": RESULTS,
    "costs": COSTS_OF_EACH,
    "lengths": {f"d{k}": 10 for k in range(100)},
    "seed": 7,
    "resamples": 300,
    "alpha": 0.3,
    "correction": "tukey",
    "correct_over": "measures",
}
#: The ids of judged and found documents that an option needs.
IDS = {"urls": ("https://a.org/{}", "https://a.org/{}?gclid={}"), "leave_out": ("q{}", "q{}")}
#: What an option needs beside it.
BESIDE: dict[str, dict[str, Any]] = {
    "first": {"gaps": "empty"},
    "documents_of": {"documents": r"^(.+)#\d+$"},
    "chunks": {"documents": r"^(.+)#\d+$"},
}


def write_files(folder: Path, *ids: str) -> tuple[str, dict[str, Any]]:
    qrels, frames = make_runs(1, *ids)
    paths = []
    for k, frame in enumerate(frames):
        paths.append(str(folder / (f"{k}.csv" if k < 3 else f"several.{k - 2}.csv")))
        frame.rename({"step": "iteration"} if k else {}).write_csv(paths[-1])
    text = "".join(f"{q} {1 + len(d) % 2} {d} {label}\n" for q, of in qrels.items() for d, label in of.items())
    (folder / "qrels.txt").write_text(text)
    return str(folder / "qrels.txt"), {"new": paths[1], "third": paths[2], "several": [paths[3], paths[4]]}


def run_all(experiment: gg.Experiment) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, analyse in ANALYSES.items():
        try:
            found[name] = analyse(experiment)
        except gg.GoodgainError as error:
            found[name] = str(error)
    return found


def test_each_option_has_another_value_here() -> None:
    assert OTHERS.keys() == DEFAULTS.keys()
    assert not [name for name, value in OTHERS.items() if value is DEFAULTS[name]]


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_an_option_changes_an_experiment_as_it_changes_a_new_one(name: str, tmp_path: Path) -> None:
    qrels, systems = write_files(tmp_path, *IDS.get(name, ()))
    if name in ("bounds", "results", "costs"):
        del systems["several"]
    if name == "columns":
        systems["third"] = str(tmp_path / "0.csv")
    if name == "page":
        pl.read_csv(systems["third"]).drop("iteration").write_csv(systems["third"])
    options = BESIDE.get(name, {})
    before = gg.Experiment(qrels, systems, **options)
    first = run_all(before)
    changed = run_all(before.with_(**{name: OTHERS[name]}))
    wanted = run_all(gg.Experiment(qrels, systems, **options | {name: OTHERS[name]}))
    again = run_all(before)
    for analysis in ANALYSES:
        compare_results(changed[analysis], wanted[analysis])
        compare_results(again[analysis], first[analysis])
    assert any(differ(changed[analysis], first[analysis]) for analysis in ANALYSES)

    if name != "columns":  # a table that lacks the column is refused, and the text of the error is what changes
        assert not isinstance(
            changed[{"results": "searches", "costs": "area", "lengths": "reading"}.get(name, "curve")], str
        )


def test_required_lines_of_an_experiment_are_those_of_a_comparison() -> None:
    x = gg.Experiment(QRELS, SYSTEMS)
    lines = ["nCG@6>=baseline-1", "SRR@6<=1"]
    wanted = gg.check(gg.compare(QRELS, SYSTEMS, "nCG@6 SRR@6", baseline="quick"), lines)
    assert list(map(str, x.check(lines))) == list(map(str, wanted))
    with pytest.raises(AssertionError, match=r"SRR@6\\<=0"):
        x.check("SRR@6<=0")
    alone = gg.Experiment(QRELS, {"late": SYSTEMS["late"]})
    assert [one.holds for one in alone.check("SRR@6<=1")] == [True]
    with pytest.raises(AssertionError, match="SRR@6<=0"):
        alone.check("SRR@6<=0")


@pytest.mark.parametrize(
    ("door", "method"),
    [(gg.evaluate, "evaluate"), (gg.compare, "compare"), (gg.curve, "curve"), (gg.ledger, "ledger"), (gg.explain, "explain"),
     (gg.report, "report"), (gg.coverage, "coverage"), (gg.pr_curve, "pr_curve"), (gg.spend, "spend")],
)  # fmt: skip
def test_a_door_has_the_arguments_of_its_method_and_names_each_option_of_an_experiment(door: Any, method: str) -> None:
    given = inspect.signature(door).parameters
    own = [*inspect.signature(getattr(gg.Experiment, method)).parameters][1:]
    options = [name for name in given if name in OTHERS and name not in own]  # a curve has costs of its own
    assert [name for name in given if name not in options and name not in ("qrels", "run", "runs", "systems")] == own
    listed = " ".join(door.__doc__.split()).partition("**options: options that analyses share (")[2].partition(").")[0]
    assert listed == ", ".join(options) and "{options}" not in door.__doc__
    assert all(given[name].default == OPTIONS[name].default for name in options)
    with pytest.raises(TypeError, match=rf"{method}\(\).*depth"):
        door(*("x" for one in given.values() if one.default is one.empty), depth=1)


def test_a_baseline_file_stands_for_a_system(tmp_path: Path) -> None:
    gg.compare(QRELS, SYSTEMS, MEASURES).write_baseline(tmp_path / "old.jsonl", "quick")
    late = {"late": SYSTEMS["late"]}
    comparison = gg.Experiment(QRELS, late).compare(MEASURES, baseline_file=tmp_path / "old.jsonl")
    compare_results(comparison, gg.compare(QRELS, late, MEASURES, baseline_file=tmp_path / "old.jsonl"))


@pytest.mark.slow
def test_runs_are_read_counted_and_tested_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    values: dict[str, int] = {}

    def count(module: Any, name: str) -> None:
        compute = getattr(module, name)

        def counted(*args: Any, **options: Any) -> Any:
            key = f"{module.__name__.rpartition('.')[2]}.{name}"
            values[key] = values.get(key, 0) + 1
            return compute(*args, **options)

        monkeypatch.setattr(module, name, counted)

    count(query_batches, "find_first_occurrences")
    count(comparison_question, "add_intervals")
    count(curves, "find_intervals_of_means")
    x = gg.Experiment(QRELS, SYSTEMS)
    for _ in range(2):
        x.evaluate("nDCG@10 nCG nDCGG SRR")
        x.compare("nDCG@10 nCG nDCGG SRR", baseline="quick", groups=None)
        x.curve("nCG nDCGG SRR")
        x.ledger()
        x.explain("quick", "late", "nCG")
        x.report(tmp_path / "report.json")
    assert (
        values["comparison_question.add_intervals"] == 2
    )  # once for the report: it compares the measures of its tiles too
    assert values["curves.find_intervals_of_means"] == 1
    assert values["query_batches.find_first_occurrences"] == 2  # of each run
    x.with_(order="interleaved").evaluate("nDCG@10 nCG")
    assert values["query_batches.find_first_occurrences"] == 2 + 2  # of each run, in another order


def test_large_files_are_read_once_for_evaluate_and_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    blocks = run_opening.RunFile.blocks

    def count(run: Any) -> Any:
        read.append(run.name)
        return blocks(run)

    monkeypatch.setattr(run_opening, "LARGE", 1_000)
    monkeypatch.setattr(run_opening.RunFile, "blocks", count)
    x = gg.Experiment(QRELS, SYSTEMS)
    scores, comparison = x.evaluate(MEASURES), x.compare(MEASURES)
    assert read == [*SYSTEMS]
    monkeypatch.undo()
    compare_results(comparison, gg.compare(QRELS, SYSTEMS, MEASURES))
    for name, run in SYSTEMS.items():
        assert scores[name, "nCG@6"] == gg.evaluate(QRELS, run, MEASURES)["nCG@6"]


def test_a_notice_comes_once_and_stands_in_each_result_that_it_concerns() -> None:
    run = {"q": {"a": 2.0, "b": 1.0}}
    x = gg.Experiment({"q": {"a": 3}}, {"one": run, "two": run})
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        first, second, compared = x.evaluate("SRE"), x.evaluate("SRE"), x.compare("SRE")
        later = x.with_(seed=7).evaluate("SRE")

    texts = [str(one.message) for one in given]
    assert len(texts) == len(set(texts)) and any("no iterations" in text for text in texts)
    assert Path(given[0].filename) == Path(__file__)

    for result in (first, second, compared, later):
        assert any("no iterations" in note for note in result.notes)
    own = gg.read_run(run)  # notices given before, elsewhere, do not count
    for _ in range(2):
        scores = gg.Experiment({"q": {"a": 3}}, {"one": own}).evaluate("SRE")
        assert any("no iterations" in note for note in scores.notes)


def test_a_notice_comes_once_though_reports_have_tables_of_their_own(tmp_path: Path) -> None:
    folder = Path(QRELS).parents[1] / "lost_documents"
    x = gg.Experiment(folder / "qrels.txt", {name: folder / f"{name}.run" for name in ("old", "new")})
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for name in ("first.html", "second.md"):
            x.report(tmp_path / name, "CG@3 SRR@3", results=folder / "results.jsonl")
        x.compare("CG@3 SRR@3")

    texts = [str(one.message) for one in given]
    assert any("stopped in" in text for text in texts) and len(texts) == len(set(texts))


def test_scores_of_several_systems_are_one_table_and_say_how_to_read_them() -> None:
    scores: Any = gg.Experiment(
        QRELS, {"quick": [SYSTEMS["quick"], SYSTEMS["late"]], "late": SYSTEMS["late"]}
    ).evaluate("CG@3")
    assert scores.values.columns == ["system", "replicate", "query_id", "measure", "value"]
    assert scores.values.select("system", "replicate").unique(maintain_order=True).rows() == [
        ("quick", 1), ("quick", 2), ("late", None)
    ]  # fmt: skip
    assert scores["late", "CG@3"] == gg.evaluate(QRELS, SYSTEMS["late"], "CG@3")["CG@3"]
    with pytest.raises(gg.InputError, match=r'\["late", "CG@3"\]'):
        scores["CG@3"]
    with pytest.raises(AttributeError, match=r"\.values"):
        scores.mean()
    with pytest.raises(gg.InputError, match="quick, late"):
        scores["nobody", "CG@3"]


def test_an_experiment_does_not_change_and_can_be_pickled() -> None:
    x = gg.Experiment(QRELS, SYSTEMS, rel=1)
    other = x.with_(rel=3)
    assert "rel=3" in repr(other) and "rel=1" in repr(x)
    compare_results(pickle.loads(pickle.dumps(other)).curve("CG"), other.curve("CG"))
    with pytest.raises(gg.InputError, match="depth="):
        x.with_(depth=3)
    with pytest.raises(gg.InputError, match="order='sen'"):
        gg.Experiment(QRELS, SYSTEMS, order="sen")


def test_tables_are_told_apart_by_identity_and_words_by_value() -> None:
    one, other = pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]})
    assert make_key(one) == make_key(one) != make_key(other)
    assert make_key(Path("a")) == make_key(Path("a")) != make_key("a")
    assert make_key(True) != make_key(1)


def test_an_experiment_keeps_the_results_that_were_used_last() -> None:
    kept, made = KeptResults(), list[int]()

    def make(key: int) -> int:
        made.append(key)
        return key

    for key in (0, *range(1, MOST_KEPT), 0, MOST_KEPT, 0, 1):
        assert kept.call(make, key) == key
    assert made == [*range(MOST_KEPT + 1), 1]  # 1 was the one not used for longest


def test_a_ledger_of_several_runs_is_refused_where_nothing_tells_their_rows_apart() -> None:
    with pytest.raises(gg.InputError, match="ledger takes one run"):
        gg.ledger(QRELS, [*SYSTEMS.values()])
    assert gg.Experiment(QRELS, {"both": [*SYSTEMS.values()]}).ledger()["system"].n_unique() == 2


def test_scores_of_several_systems_print_their_values_and_say_how_to_choose() -> None:
    qrels = {"q": {"a": 2, "b": 2}}
    scores = gg.Experiment(qrels, {"bm25": {"q": {"a": 1.0}}, "reformer": {"q": {"a": 2.0, "b": 1.0}}}).evaluate(
        "R@5 P@1"
    )
    assert isinstance(scores, SystemScores)
    assert str(scores) == "measure    bm25  reformer\nR@5      0.5000    1.0000\nP@1      1.0000    1.0000"

    key: Any = "reformer"
    with pytest.raises(
        gg.InputError, match=r'\["reformer", "R@5"\], or \.systems\["reformer"\] for all of its scores$'
    ):
        scores[key]

    for key, shown in (("P@1", "P@1"), ("reformr", "R@5")):
        with pytest.raises(gg.InputError, match=rf'and a measure: \["reformer", "{shown}"\]$'):
            scores[key]


def test_a_misspelt_attribute_of_a_run_names_the_run_and_converts_nothing() -> None:
    run = gg.read_run({"q": {"a": 1.0}})
    with pytest.raises(AttributeError, match="'Run' object has no attribute 'flaten'"):
        run.flaten()
    assert "_pandas" not in vars(run)
    assert run.doc_id.to_list() == ["a"]
    with pytest.raises(AttributeError, match="'Qrels' object has no attribute 'lables'"):
        _ = gg.read_qrels({"q": {"a": 1}}).lables
