"""Reads the searches and the titles of documents that the systems of a call returned."""

from collections.abc import Sequence
from itertools import chain
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
    given = results if isinstance(results, (list, tuple)) else [results]
    if len(given) not in (1, len(names)):
        told = f"{spell('results')}: {len(given)} files were given"
        raise InputError(f"{told}. Give one file with all systems, or one for each.")
    opened = [read_frame(getattr(one, "frame", one), "the results") for one in map(open_results, given)]
    systems = [of.get_column("system").unique().to_list() if "system" in of.columns else [] for of in opened]
    searches, times = {}, len(names) // len(opened)
    for name, source, known in zip(names, opened * times, systems * times, strict=True):
        # Results of one system are taken under any name: convert -o names the run, and not the results. If another file
        # has the name of the run, the files are in the wrong order.
        if name not in known and (len(known) > 1 or len(opened) < len(names) or name in chain(*systems)):
            others = sorted({other for other in known if other is not None})
            shown = ", ".join(map(repr, others)) or "none with a name"
            remedy = advise_name(others[0]) if others else "Rename the runs"
            raise InputError(
                f"the results hold no system {name!r}, only {shown}. {remedy}, or give "
                f"{spell('results')} for each run, in the order of the runs."
            )
        of_run = source.filter(system=name) if name in known else source
        if "replicate" in source.columns and (number := of_run.get_column("replicate").n_unique()) > 1:
            told = spell("results")
            raise InputError(
                f"{told} has {number} runs of {name}. Give a file with the rows of one replicate, or leave out {told}."
            )
        searches[name] = list_searches(of_run)
    named = pl.concat(name_results(one).select("query_id", "title", "url", doc_id="name") for one in opened)
    titles = named.group_by("query_id", "doc_id").agg(
        title=pl.coalesce("title", "url").drop_nulls().first(), url=pl.col("url").drop_nulls().first()
    )
    return Results(searches, titles)
