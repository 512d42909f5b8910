"""Everything that reads a file, from the registries of formats: a new format is in these lists by existing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import goodgain as gg
from goodgain.files import opening
from goodgain.judgments.judging.grade_table import read_grades
from goodgain.judgments.labelling.documents_to_label import collect_documents, read_queries, read_texts
from goodgain.logs.traces.formats import formats
from tests.logs.traces.logs import WRITERS

__all__ = ["PATH_READERS", "PathReader"]

#: The ending of a file's name, and what reads it.
PathReader = tuple[str, Callable[[Path], object]]

_QRELS = {"q": {"a": 2}}
_OF_LINES = [".txt", ".csv", ".tsv", *(e for e, kind in opening._CONTAINERS.items() if kind == "jsonl")]
_OF_FRAMES = [e for e, kind in opening._CONTAINERS.items() if kind not in ("jsonl", "text")]
_TABLES: dict[str, Callable[[Path], object]] = {
    "run": gg.read_run,
    "qrels": gg.read_qrels,
    "grades": read_grades,
    "evaluated run": lambda path: gg.evaluate(_QRELS, path, "CG nDCG"),
}
#: What `goodgain label` reads, beside runs and results.
_LABELLING: dict[str, Callable[[Path], object]] = {
    "queries": read_queries,
    "texts": read_texts,
    "sheet": lambda path: collect_documents(path, {f"q{k}": "who" for k in range(10)}),
}


def _ending(name: str) -> str:
    return Path(WRITERS[name][1]).suffix if name in WRITERS else ".txt"


PATH_READERS: dict[str, PathReader] = {
    **{f"log{ending}": (ending, gg.read_traces) for ending in (".json", ".jsonl", ".txt", ".eval")},
    **{
        f"log in {name}": (_ending(name), partial(gg.read_traces, format=name, unrecorded="empty"))
        for name in formats()
    },
    **{f"{table}{ending}": (ending, read) for table, read in _TABLES.items() for ending in (*_OF_LINES, *_OF_FRAMES)},
    **{
        f"{table}{ending}": (ending, read)
        for table, read in _LABELLING.items()
        for ending in (".csv", ".tsv", ".jsonl", ".parquet")
    },
    "log.parquet": (".parquet", gg.read_traces),
    "grades.json": (".json", read_grades),
    "results.jsonl": (".jsonl", gg.read_results),
    "results.parquet": (".parquet", gg.read_results),
}
