"""Reads the searches and the titles of documents that the systems of a call returned."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from goodgain.counting.joined_addresses import spell_like
from goodgain.errors import InputError
from goodgain.files.table_reading import read_frame
from goodgain.formats.results import list_searches, name_results, open_results
from goodgain.options import advise_name, spell


class Results(NamedTuple):
    searches: dict[str, pl.DataFrame]  # system -> what `list_searches` returns; empty without results
    titles: pl.DataFrame  # query_id, doc_id, title (else the URL), url

    def spell_as(self, query_ids: pl.DataFrame, documents: pl.DataFrame) -> "Results":
        """Return the results with ids spelled as in `query_ids` (query_id) and `documents` (query_id, doc_id)."""
        searches = {system: spell_like(rows, query_ids) for system, rows in self.searches.items()}
        titles = spell_like(self.titles, documents).unique(["query_id", "doc_id"], keep="first", maintain_order=True)
        return Results(searches, titles)


def read_results_of(names: Sequence[str], results: Any) -> Results:
    """Read the results of the named systems, from one frame or file with all systems, or from a frame or file for each system."""
    if results is None:
        return Results({}, pl.DataFrame(schema=dict.fromkeys(("query_id", "doc_id", "title", "url"), pl.String)))
    sources = results if isinstance(results, (list, tuple)) else [results]
    if len(sources) not in (1, len(names)):
        problem = f"{spell('results')}: {len(sources)} files were given"
        raise InputError(f"{problem}. Give one file with all systems, or one for each.")
    tables = [read_frame(getattr(source, "frame", source), "the results") for source in map(open_results, sources)]

    searches = {}
    all_systems = set().union(*map(_list_systems, tables))
    for name, table in zip(names, tables * (len(names) // len(tables)), strict=True):
        systems = _list_systems(table)
        # Results of one system are taken under any name: convert -o names the run, and not the results. If another file
        # has the name of the run, the files are in the wrong order.
        is_misnamed = len(systems) > 1 or len(tables) < len(names) or name in all_systems
        if name not in systems and is_misnamed:
            raise _lack_system(name, systems)
        rows = table.filter(system=name) if name in systems else table
        _check_replicates(rows, name)
        searches[name] = list_searches(rows)

    named = pl.concat(name_results(table).select("query_id", "title", "url", doc_id="name") for table in tables)
    title = pl.coalesce("title", "url").drop_nulls().first()
    url = pl.col("url").drop_nulls().first()
    return Results(searches, named.group_by("query_id", "doc_id").agg(title=title, url=url))


def _list_systems(table: pl.DataFrame) -> list[str | None]:
    return table.get_column("system").unique().to_list() if "system" in table.columns else []


def _lack_system(name: str, systems: Sequence[str | None]) -> InputError:
    """Return the error for results that lack a system. `systems` are the systems of the results."""
    names = sorted(system for system in set(systems) if system is not None)
    listed = ", ".join(map(repr, names)) or "none with a name"
    remedy = advise_name(names[0]) if names else "Rename the runs"
    return InputError(
        f"the results hold no system {name!r}, only {listed}. {remedy}, or give "
        f"{spell('results')} for each run, in the order of the runs."
    )


def _check_replicates(rows: pl.DataFrame, name: str) -> None:
    """Raise `InputError` if the results of a system are those of several runs."""
    number = rows.get_column("replicate").n_unique() if "replicate" in rows.columns else 1
    if number > 1:
        argument = spell("results")
        raise InputError(
            f"{argument} has {number} runs of {name}. Give a file with the rows of one replicate, or leave out {argument}."
        )
