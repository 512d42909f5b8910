"""The worked examples through ranx: `expected.json` comes from the oracle and from ranx itself, never from goodgain."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import ranx

import goodgain.hosts.ranx as host
from goodgain.measures.names import HOST_NAMES, parse_measure
from tests.support.make_expected import EXAMPLES, FOLDER, source

#: What ranx calls the measures that mean the same there.
CLASSIC = {"P": "precision", "R": "recall", "RR": "mrr", "AP": "map", "nDCG": "ndcg"}


def ranx_name(measure: str) -> str | None:
    """The metric of ranx for a name in expected.json; None where ranx has none."""
    if source(measure) == "ranx":
        return measure
    if source(measure) == "oracle":
        parsed: Any = parse_measure(measure)
        name = next(name for name, ours in HOST_NAMES.items() if type(ours) is type(parsed) and same_pool(ours, parsed))
        return name + at(parsed.cutoff) + (f"-l{parsed['rel']}" if "rel" in parsed.params else "")
    parts = re.fullmatch(r"(\w+)(?:\(rel=([0-9]+)\))?((?:@[0-9]+)?)", measure)
    if parts is None or parts[1] not in CLASSIC:
        return None
    return CLASSIC[parts[1]] + parts[3] + (f"-l{parts[2]}" if parts[2] else "")


def same_pool(one: object, other: object) -> bool:
    return getattr(one, "params", {}).get("pool") == getattr(other, "params", {}).get("pool")


def at(cutoff: int | None) -> str:
    return "" if cutoff is None else f"@{cutoff}"


def values(folder: Path, run: str, order: str) -> dict[str, float]:
    stored: dict[str, float] = json.loads((folder / "expected.json").read_text(encoding="utf-8"))[run][order]
    return stored


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_numbers_of_every_worked_example_come_out_of_ranx(name: str) -> None:
    folder = FOLDER / name
    qrels = host.Qrels(folder / "qrels.txt")
    for path in sorted(folder.glob("*.run")):
        for order in EXAMPLES[name][0]:
            expected = {
                known: value
                for measure, value in values(folder, path.name, order).items()
                if (known := ranx_name(measure)) is not None
            }
            assert expected
            run = host.Run(path, order=order)
            found = ranx.evaluate(qrels, run, list(expected), make_comparable=True)
            found = found if isinstance(found, dict) else dict.fromkeys(expected, found)
            assert found == pytest.approx(expected, abs=1e-9)


def test_the_examples_that_need_ranx_are_among_them() -> None:
    of_ranx = [measure for _, measures in EXAMPLES.values() for measure in measures if source(measure) == "ranx"]
    assert {measure.partition("@")[0] for measure in of_ranx} == {"dcg", "dcg_burges"}
    assert all(ranx_name(measure) == measure for measure in of_ranx)
