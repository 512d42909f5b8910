"""The gate: `goodgain compare --require`, as a continuous integration job meets it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import ir_measures
import pytest

from goodgain.cli.shared_options import name_systems
from goodgain.comparing.comparison import compare
from goodgain.comparing.requirements import check_requirements, parse_requirement
from goodgain.errors import InputError, MeasureError
from tests.comparing.test_comparison import EXAMPLES, many, quietly
from tests.support.command import run_command

REDUNDANCY = EXAMPLES / "redundancy"


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_command("compare", *arguments)


def redundancy(*arguments: str, first: str = "lean", second: str = "repeating") -> subprocess.CompletedProcess[str]:
    return command(REDUNDANCY / "qrels.txt", REDUNDANCY / f"{first}.run", REDUNDANCY / f"{second}.run", *arguments)


def test_lines_that_hold_exit_with_0_and_the_comparison_is_printed() -> None:
    done = redundancy("--require", "SRR@3<=0.47", "--require", "CG@3>=baseline", "-o", "csv")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith("SRR@3,down,repeating,lean,2,0.4642")
    assert "holds: CG@3>=baseline: repeating has 7.5000, equal (baseline 7.5000); not significant" in done.stderr


def test_a_line_that_fails_exits_with_3_and_says_which_system_and_by_how_much() -> None:
    done = redundancy("-m", "SRE@3", "--require", "SRR@3<=0.3", "--require", "SRE@3>=baseline", "-o", "markdown")
    assert done.returncode == 3
    assert "| SRE@3 ↑ | repeating | lean |" in done.stdout
    assert "failed: SRR@3<=0.3: repeating has 0.4643, 0.1643 above; not significant (t-test, p = 0.1363)" in done.stderr
    assert "failed: SRE@3>=baseline: repeating has 0.3095, 0.2738 below (baseline 0.5833); " in done.stderr
    assert "not significant (randomisation test, p = 0.5)" in done.stderr
    assert "lean has" not in done.stderr  # the yardstick is held to no line


def test_without_a_baseline_every_system_is_held_to_the_line() -> None:
    done = redundancy("--require", "SRR@3>0.1", "-o", "csv")
    assert done.returncode == 3
    assert "failed: SRR@3>0.1: lean has 0.0000, 0.1 below" in done.stderr
    assert "holds: SRR@3>0.1: repeating has" in done.stderr


def test_the_baseline_can_be_named_and_a_run_called_baseline_is_it(tmp_path: Path) -> None:
    named = redundancy("--require", "SRR@3<=baseline", "--baseline", "repeating", "-o", "csv")
    assert named.returncode == 0 and "lean has 0.0000, 0.4643 below (baseline 0.4643)" in named.stderr
    yardstick = tmp_path / "baseline.run"
    yardstick.write_bytes((REDUNDANCY / "repeating.run").read_bytes())
    files = REDUNDANCY / "qrels.txt", REDUNDANCY / "lean.run", yardstick
    called = command(*files, "--require", "SRR@3<=baseline", "-o", "csv")
    assert called.returncode == 0 and "signature: baseline=baseline" in called.stderr


def test_a_significant_difference_is_called_so() -> None:
    labels, runs = many()
    outcome = check_requirements(
        compare(labels, runs, "SRR@3", baseline="wordy"), [parse_requirement("SRR@3<baseline")]
    )[0]
    assert outcome.holds and outcome.significant and outcome.p == 1 / 10_000
    number = check_requirements(compare(labels, runs, "SRR@3"), [parse_requirement("SRR@3<=0.1")])
    told = [(one.system, one.holds, one.significant) for one in number]
    assert told == [("wordy", False, True), ("lean", True, False)]


def test_low_coverage_stands_beside_the_p_of_a_line() -> None:
    labels, runs = many(20)
    few = {query: dict(list(docs.items())[:5]) for query, docs in labels.items()}
    outcome = check_requirements(quietly(few, runs, "SRR@3"), [parse_requirement("SRR@3<=0.1")])[0]
    assert outcome.low_coverage and ", low coverage)" in str(outcome)


def test_a_mean_that_rounding_moved_off_the_bound_is_equal_to_it() -> None:
    labels = {f"q{k}": {"a": 2} for k in range(3)}
    runs = {"x": {q: {"a": 1.0, **{f"d{k}": 0.5 for k in range(9)}} for q in labels}}
    runs["y"] = runs["x"]
    found = quietly(labels, runs, "SRE@1")
    lines = [parse_requirement(f"SRE@1{sign}0.1") for sign in ("<=", ">=", "<", ">")]
    assert [outcome.holds for outcome in check_requirements(found, lines) if outcome.system == "x"] == [
        True,
        True,
        False,
        False,
    ]


def test_a_measure_without_a_value_never_passes() -> None:
    labels, runs = many(3)
    nothing = ir_measures.define_byquery(lambda qrels, run: float("nan"), name="Nothing")
    found = quietly(labels, runs, [nothing])
    line = parse_requirement("CG<=1e9")
    outcome = check_requirements(found, [type(line)("Nothing<=1", nothing, "<=", 1.0)])[0]
    assert not outcome.holds and "no value" in str(outcome)


@pytest.mark.parametrize(
    "text",
    ["SRR@3", "SRR@3=0.3", "SRR@3<=", "<=0.3", "SRR@3<=much", "SRR@3<=nan", "SRR@3<=0_3", "SRR@3<=٣", "0<SRR@3<1"],
)
def test_a_line_of_another_form_is_one_sentence(text: str) -> None:
    with pytest.raises(InputError, match="is not a requirement; write one such as"):
        parse_requirement(text)


def test_an_unknown_measure_in_a_line_is_an_error_of_its_own() -> None:
    with pytest.raises(MeasureError, match="did you mean SRR"):
        parse_requirement("SSRR@3<=0.3")


def test_parameters_of_a_measure_may_stand_in_a_line() -> None:
    line = parse_requirement("SRE(rel=3)@5 >= -1e-3")
    assert (str(line.measure), line.sign, line.bound) == ("SRE(rel=3)@5", ">=", -0.001)


def test_a_wrong_line_exits_with_2_before_any_file_is_read() -> None:
    done = command("absent", "absent", "absent", "--require", "SRR@3")
    assert done.returncode == 2
    assert (
        done.stderr == "goodgain: 'SRR@3' is not a requirement; write one such as 'SRR@3<=0.3' or 'SRE@3>=baseline'\n"
    )


def test_a_line_that_asks_for_no_better_than_the_baseline_is_noticed() -> None:
    done = redundancy("--require", "SRR@3>=baseline", "-o", "csv")
    assert (
        "notice: 'SRR@3>=baseline' fails for a system better than the baseline: SRR@3 is better when lower"
        in done.stderr
    )


def test_a_line_about_something_that_was_not_compared_is_an_error() -> None:
    labels, runs = many(3)
    with pytest.raises(InputError, match="SRE was not compared"):
        check_requirements(quietly(labels, runs, "SRR@3"), [parse_requirement("SRE>0")])
    with pytest.raises(InputError, match="has no baseline"):
        check_requirements(quietly(labels, runs, "SRR@3"), [parse_requirement("SRR@3>=baseline")])


def test_the_command_compares_classic_measures_and_ours_and_writes_json() -> None:
    done = redundancy("-m", "nDCG@10 SRR", "-m", "CG@1", "--iterations", "2", "-o", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [pair["measure"] for pair in found["pairs"]] == ["nDCG@10", "SRR@1", "SRR@2", "SRR", "CG@1"]
    assert "signature: " in done.stderr and "seed=42" in done.stderr


def test_one_file_twice_is_compared_with_itself() -> None:
    done = redundancy("-m", "SRR", "-o", "json", second="lean")
    pair = json.loads(done.stdout)["pairs"][0]
    assert (pair["system"], pair["against"], pair["verdict"], pair["p_t"]) == ("lean (2)", "lean", "equal", 1)


def test_systems_are_named_by_the_stem_and_what_tells_them_apart() -> None:
    assert name_systems(["x/a.run", "b.run.gz"]) == ["a", "b"]
    assert name_systems(["main/agent.run", "new/agent.run", "other.run"]) == ["main/agent", "new/agent", "other"]
    assert name_systems(["/p/main/out/agent.run", "/p/new/out/agent.run"]) == ["main/out/agent", "new/out/agent"]
    assert name_systems(["a.run", "a.jsonl"]) == ["a.run", "a.jsonl"]
    assert name_systems(["a.run", "a.run", "m/a.run"]) == ["a", "a (2)", "m/a"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "SRR", "--baseline", "x"], "baseline 'x' is not one of the systems; they are lean, repeating"),
        (["-m", "DCG@3"], "DCG is ambiguous here"),
        ([], "no measure was named"),
    ],
)
def test_wrong_arguments_exit_with_2_and_one_line(arguments: list[str], message: str) -> None:
    done = redundancy(*arguments)
    assert done.returncode == 2 and message in done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""
