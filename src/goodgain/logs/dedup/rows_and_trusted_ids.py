"""Reads the rows of a results frame, makes them comparable, and collapses equal rows into one record."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl
import polars.selectors as cs

from goodgain.errors import InputError
from goodgain.formats.urls import parse_url
from goodgain.logs.dedup import document_types
from goodgain.logs.dedup.document_types import SEVERAL, TYPES, DocumentType
from goodgain.logs.dedup.said_pairs import UserPairs
from goodgain.schema import BLANKS, EMPTY_DOC

Level = Literal["passage", "document"]
Policy = Literal["standard", "id", "strict", "content"]

#: The columns that separate results unless `across` names them; a run frame has its system in `tag`.
SCOPES = ("query_id", "system")
#: The columns that distinguish the runs of a query: a system may have several.
OF_RUNS = ("query_id", "system", "replicate")
#: The columns for the place of a result in a run, from the widest to the narrowest unit.
RUN_ORDER = ("turn", "iteration", "search", "rank")
_TEXT_COLUMNS = ("doc_id", "type", "url", "title", "snippet")
PLAIN_COLUMNS = (*OF_RUNS, *RUN_ORDER, *_TEXT_COLUMNS)
_EVIDENCE_COLUMNS = ("url", "title", "snippet", "ids", "fields")

#: A snippet of this many characters is long enough to recognise a text by it.
MIN_SNIPPET = 50
_URL_FORMS = {
    "url": pl.String,
    "page": pl.String,
    "item": pl.String,
    "anchor": pl.String,
    "choice": pl.String,
    "edition": pl.String,
    "beyond_start": pl.Boolean,
}
_ADDRESS = "^[A-Za-z][A-Za-z0-9+.-]*://"

_NO_PAIRS = pl.DataFrame(schema={"row": pl.get_index_type(), "name": pl.String, "value": pl.String})

ITEM_IDS = tuple(dict.fromkeys(name for kind in TYPES.values() for name in kind.item_ids))


def _list_names(kind: DocumentType) -> set[str]:
    """Return the names of the ids and fields that the rules of a type use."""
    further_names = {name for key in kind.further_keys for name in key}
    return {*kind.item_ids, kind.title, "parent_url", *kind.required, *kind.reject, *kind.weights, *further_names}


#: All names of ids and fields that some type uses; title and snippet have columns of their own.
USED_NAMES = frozenset[str]().union(*map(_list_names, TYPES.values())) - {"title", "snippet"}

#: The columns of content: title, snippet and fields, without ids and URLs.
CONTENT_COLUMNS = ("title", "snippet", "parent", *sorted(USED_NAMES - {*ITEM_IDS, "parent_url"}), "rest")
_IDENTIFYING_COLUMNS = ("type", "doc_id", "item", *ITEM_IDS, *CONTENT_COLUMNS)

_NAMED_ALWAYS = pl.col("type").is_in(document_types.NAMED_BY_URL)
_NAMED_BEYOND_START = pl.col("type").is_in(document_types.NAMED_BEYOND_START)
#: Whether the URL of a record names one item.
URL_NAMES_IT = _NAMED_ALWAYS | (_NAMED_BEYOND_START & pl.col("beyond_start"))

_HAS_OTHER_FORM = pl.col("url").str.contains("^https?://") & (pl.col("item") != pl.col("url"))
_NORMAL_URL = pl.lit("https://") + pl.col("item") + pl.col("anchor")
#: The canonical URL of a record, as `Url.canonical`.
CANONICAL = pl.when(_HAS_OTHER_FORM).then(_NORMAL_URL).otherwise("url")


@dataclass(frozen=True)
class Records:
    """The distinct records of a results frame. Rows with equal content are one record.

    Attributes:
        frame: one row per record, in an order that does not depend on the order of rows.
        of_row: the record of each row of results; null if the row has no result.
        attributes: the ids and fields that occur.
        trusted: whether doc_ids alone decide which results are one document.
        policy: which rules decide, as for `deduplicate`.
        user_pairs: the pairs that the user gave as `same` or `different`, if any.
    """

    frame: pl.DataFrame
    of_row: pl.Series
    attributes: tuple[str, ...]
    trusted: bool
    policy: Policy = "standard"
    user_pairs: UserPairs | None = None
    _codes: dict[tuple[str, ...], npt.NDArray[np.int64]] = field(default_factory=dict, repr=False)

    def codes(self, *names: str) -> npt.NDArray[np.int64]:
        """Return codes for the values of a column: equal values share a code, null has -1. Several columns are coalesced first."""
        if names not in self._codes:
            code = pl.coalesce(names).rank("dense").cast(pl.Int64).fill_null(-1)
            self._codes[names] = self.frame.select(code).to_series().to_numpy()
        return self._codes[names]


def hash_columns(frame: pl.DataFrame, names: Iterable[str] = _IDENTIFYING_COLUMNS, size: int = 16) -> pl.Series:
    """Return one hash per row of `frame`, made from the columns `names`. Hashes are the same on every machine."""
    # Leave out nulls with their names: a column that only other rows have must not change the hash of a row.
    columns = [name for name in names if name in frame.columns]
    values = [pl.lit(f"{name}=") + pl.col(name) for name in columns]
    line = pl.concat_str(values, separator="\x1e", ignore_nulls=True)
    digests = []
    for text in frame.select(line).to_series().to_list():
        digests.append(hashlib.blake2b(text.encode(), digest_size=size).hexdigest())
    return pl.Series(digests, dtype=pl.String)


def order_records(frame: pl.DataFrame) -> pl.Series:
    """Return a sort key for each record: the hash of its content and URL. The doc_id breaks ties."""
    without_doc_id = [name for name in _IDENTIFYING_COLUMNS if name != "doc_id"]
    return hash_columns(frame, ["url", *without_doc_id]) + hash_columns(frame)


def name_texts(frame: pl.DataFrame) -> pl.Series:
    return "text:" + hash_columns(frame, CONTENT_COLUMNS, 8)


def has_only_ids(frame: nw.DataFrame[Any]) -> bool:
    """Return whether a frame identifies documents only by doc_id, as a run does."""
    return "doc_id" in frame.columns and not {*frame.columns} & {*_EVIDENCE_COLUMNS, "type"}


def read_rows(frame: nw.DataFrame[Any], across: Collection[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return two frames: the rows, and a long table of the ids and fields of rows (row, name, value).

    Rows with the same number in the column `scope` are deduplicated together. Rows without a result have a null scope.
    """
    columns = _select_columns(frame)
    bags = [_list_pairs(columns, name) for name in ("ids", "fields") if name in columns.columns]
    pairs = pl.concat(bags or [_NO_PAIRS])
    rows = _fill_columns(columns)
    if rows["query_id"].null_count():
        place = rows["query_id"].is_null().arg_max()
        raise InputError(f"Row {place} of the results has no query_id: every result belongs to a query.")

    # A search with no results has doc_id `-` or null in a run, and rank 0 in results.
    has_text = pl.any_horizontal(pl.col("doc_id", "url", "title", "snippet").is_not_null())
    has_pair = pl.col("row").is_in(pairs["row"].unique().implode())
    is_result = has_text | has_pair
    if not has_only_ids(frame):
        is_result = is_result | (pl.col("rank") > 0).fill_null(False)

    separating = [name for name in SCOPES if name not in across]
    if separating:
        scopes = rows.select(separating).unique().sort(separating, nulls_last=False)
        scopes = scopes.with_row_index("scope")
        rows = rows.join(scopes, on=separating, how="left", nulls_equal=True, maintain_order="left")
    else:
        rows = rows.with_columns(scope=pl.lit(0, pl.UInt32))
    return rows.with_columns(scope=pl.when(is_result).then("scope")), pairs


def _select_columns(frame: nw.DataFrame[Any]) -> pl.DataFrame:
    """Return the known columns of a frame, with the number of each row in `row`. The tag of a run is its system."""
    names = set(frame.columns)
    if "query_id" not in names:
        listing = ", ".join(sorted(map(str, names))) or "none"
        raise InputError(f"The results have no column query_id (found {listing}): rename a column to query_id.")
    if not names & {*_EVIDENCE_COLUMNS, "doc_id"}:
        raise InputError("The results have no column that identifies documents: give doc_id, url, title or snippet.")

    columns = [name for name in (*PLAIN_COLUMNS, "ids", "fields") if name in names]
    if "system" not in names and "tag" in names:
        frame = frame.rename({"tag": "system"})
        columns.append("system")
    rows = frame.select(columns).to_polars().with_row_index("row")
    rows = rows.with_columns((cs.categorical() | cs.enum()).cast(pl.String))

    if "iteration" in names and rows.schema["iteration"].is_float():
        # Null is allowed. NaN and infinity are errors: their remainder is NaN.
        is_whole = (pl.col("iteration") % 1) == 0
        broken = rows.filter(is_whole.not_())
        if broken.height:
            raise InputError(f"The column iteration of the results has {broken['iteration'][0]}: give whole numbers.")
    return rows


def _list_pairs(rows: pl.DataFrame, bag: str) -> pl.DataFrame:
    """Return the names and values in a column of structs, or of lists of {name, value}, as a table (row, name, value)."""
    kind = rows.schema[bag]
    if kind in (pl.Null, pl.List(pl.Null), pl.Struct([])):
        return _NO_PAIRS

    bags = rows.select("row", bag).filter(pl.col(bag).is_not_null())
    inner_fields = getattr(kind.inner, "fields", ()) if isinstance(kind, pl.List) else ()
    if isinstance(kind, pl.Struct):
        wide = bags.select("row", pl.col(bag).struct.unnest().cast(pl.String))
        long = wide.unpivot(index="row", variable_name="name", value_name="value").drop_nulls("value")
    elif {"name", "value"} <= {inner.name for inner in inner_fields}:
        is_filled = pl.col(bag).list.len() > 0
        exploded = bags.filter(is_filled).explode(bag)
        members = pl.col(bag).struct.field("name", "value")
        long = exploded.select("row", members.cast(pl.String))
    else:
        raise InputError(f"Column {bag} of the results holds {kind}: give lists of {{name, value}}, or structs.")
    return long.select(_NO_PAIRS.columns)


def _fill_columns(rows: pl.DataFrame) -> pl.DataFrame:
    """Return all plain columns as texts and numbers. Missing columns, blank texts and the doc_id `-` become null."""
    absent = {*PLAIN_COLUMNS} - {*rows.columns}
    rows = rows.with_columns(pl.lit(None).alias(name) for name in absent)
    texts = pl.col("type", "url", "title", "snippet").cast(pl.String)
    doc_id = pl.col("doc_id").cast(pl.String).str.strip_chars(BLANKS)
    return rows.select(
        "row",
        pl.col(OF_RUNS).cast(pl.String),
        pl.when(~doc_id.is_in(["", EMPTY_DOC])).then(doc_id),
        pl.when(texts.str.contains(r"\S")).then(texts),
        pl.col(RUN_ORDER).cast(pl.Float64, strict=False),
    )


def make_comparable(rows: pl.DataFrame, pairs: pl.DataFrame, *, trusted: bool, level: Level) -> pl.DataFrame:
    """Return the rows with normalised texts, ids and URLs, and a column for each id and field that a type uses."""
    raw_types = rows["type"].unique().drop_nulls().to_list()
    type_names = {raw: document_types.canonical_name(raw) for raw in raw_types}
    known_types = {raw: name for raw, name in type_names.items() if name in TYPES}
    generic = document_types.GENERIC.name
    comparable = rows.select("row", "scope", "system", "doc_id", raw_url="url")
    comparable = comparable.with_columns(
        type=rows["type"].replace_strict(known_types, default=generic, return_dtype=pl.String),
        title=document_types.normalise_texts(rows["title"]),
        snippet=document_types.normalise_texts(rows["snippet"]),
    )
    for columns in _read_attributes(pairs.drop_nulls()):
        comparable = comparable.join(columns, on="row", how="left", maintain_order="left")
    for kind in TYPES.values():  # the title of some types is one of their fields: the subject of an email
        if kind.title in comparable.columns and kind.title != "title":
            is_of_kind = pl.col("type") == kind.name
            title = pl.when(is_of_kind).then(pl.coalesce(kind.title, "title")).otherwise("title")
            comparable = comparable.with_columns(title=title)

    comparable = _fill_parents(comparable, level)
    comparable = _add_url_forms(comparable).drop("raw_url", "parent_url")
    if level == "document":  # an anchor names a passage, not the document
        is_document = pl.col("type") != document_types.PARENT.name
        anchor = pl.when(is_document).then("anchor").otherwise(pl.lit(""))
        comparable = comparable.with_columns(anchor=anchor)
    if trusted:
        return comparable
    return comparable.with_columns(doc_id=document_types.normalise_kind(comparable["doc_id"], "id"))


def _read_attributes(pairs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return two frames with the column `row`: a column per id and field that a type uses, and all other pairs in `rest`."""
    raw_names = pairs["name"].unique().to_list()
    names = {raw: document_types.canonical_name(raw) for raw in raw_names}
    name = pl.col("name").replace_strict(names, default=None, return_dtype=pl.String)
    pairs = pairs.with_columns(name)
    # A parent given by its URL is compared as a URL.
    is_parent_url = (pl.col("name") == "parent") & pl.col("value").str.contains(_ADDRESS)
    name = pl.when(is_parent_url).then(pl.lit("parent_url")).otherwise("name")
    pairs = pairs.with_columns(name=name)
    normal = document_types.normalise_values(pairs["name"], pairs["value"])
    pairs = pairs.with_columns(value=normal).drop_nulls().unique()

    is_used = pl.col("name").is_in(USED_NAMES)
    joined_values = pl.col("value").sort().str.join(SEVERAL)
    values = pairs.filter(is_used).group_by("row", "name").agg(joined_values)
    names_used = values["name"].unique().sort()
    columns = values.pivot("name", index="row", values="value", on_columns=names_used)

    pair = pl.col("name") + "=" + pl.col("value")
    unused = pairs.filter(~is_used).select("row", pair=pair)
    joined_pairs = pl.col("pair").sort().str.join(SEVERAL)
    return columns, unused.group_by("row").agg(rest=joined_pairs)


def _fill_parents(rows: pl.DataFrame, level: Level) -> pl.DataFrame:
    """Give each passage the URL of its parent document. At level "document", replace each passage by its parent."""
    is_passage = pl.col("type") == "passage"
    passage_columns = ("chunk_id", "offset", "chunk")
    for name in ("parent", "parent_url", *passage_columns):
        if name not in rows.columns:
            rows = rows.with_columns(pl.lit(None, pl.String).alias(name))

    parent_url = pl.coalesce("parent_url", "raw_url")
    rows = rows.with_columns(raw_url=pl.when(is_passage).then(parent_url).otherwise("raw_url"))
    if level == "passage":
        return rows

    has_parent = pl.col("parent").is_not_null() | pl.col("parent_url").is_not_null()
    parent_type = pl.lit(document_types.PARENT.name)
    is_replaced = is_passage & has_parent
    return rows.with_columns(
        pl.when(~is_passage).then(pl.col("snippet", "rest", *passage_columns)),
        type=pl.when(is_passage).then(parent_type).otherwise("type"),
        doc_id=pl.when(is_replaced).then("parent").otherwise("doc_id"),
    )


def _add_url_forms(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the parts of each URL that are compared (see `parse_url`). All are null, also `url`, if the text is not a URL."""
    no_forms = [None] * len(_URL_FORMS)
    raw_urls = rows["raw_url"].unique().drop_nulls().to_list()
    forms = [(raw_url, *(parse_url(raw_url) or no_forms)) for raw_url in raw_urls]
    parsed = pl.DataFrame(forms, schema={"raw_url": pl.String, **_URL_FORMS}, orient="row")
    return rows.join(parsed, on="raw_url", how="left", maintain_order="left")


def collapse_rows(rows: pl.DataFrame, *, trusted: bool, policy: Policy = "standard") -> Records:
    """Collapse rows with equal content and address to one record. Rows without a result have no record.

    The records get the columns `vague` (too little content to identify a document) and `reissued` (the doc_id stands for several
    documents).
    """
    used = [name for name in rows.columns if name in USED_NAMES]
    attributes = tuple(name for name in used if rows[name].null_count() < rows.height)
    # Rows that are equal in these columns are one record. Sorting makes records independent of the order of rows.
    identity = ["scope", "item", "anchor", "snippet", "title", "type", "doc_id", *attributes, "rest"]
    ordered = rows.filter(pl.col("scope").is_not_null()).sort(identity)
    record = pl.struct(identity).rle_id().cast(pl.UInt32)
    ordered = ordered.with_columns(record=record)
    frame = ordered.group_by("record", maintain_order=True).agg(
        pl.col(*identity, "page", "choice", "edition", "beyond_start").first(),
        pl.col("url").min(),
        rows=pl.len(),
        snippet_length=document_types.text_length(pl.col("snippet").first()),
    )

    # Vague records have too little content to identify a document. Equal vague records are not one document.
    is_identified = has_item_id(attributes, document_types.list_comparable_types)
    is_identified = is_identified | pl.col("doc_id").is_not_null() | pl.col("item").is_not_null()
    is_vague = ~(is_identified | (pl.col("snippet_length") >= MIN_SNIPPET))
    frame = frame.with_columns(vague=is_vague, reissued=_is_reissued(attributes))

    record_of_row = ordered.select("row", "record")
    of_row = rows.select("row").join(record_of_row, on="row", how="left", maintain_order="left")
    return Records(frame, of_row["record"], attributes, trusted, policy)


def has_item_id(attributes: Collection[str], list_types: Callable[[str], Iterable[DocumentType]]) -> pl.Expr:
    """Return an expression: whether a record has an item id of one of the types that `list_types` gives for the record's type."""
    has_any = pl.lit(False)
    for type_name in TYPES:
        item_ids = [item_id for kind in list_types(type_name) for item_id in kind.item_ids if item_id in attributes]
        if item_ids:
            has_id = pl.any_horizontal(pl.col(item_ids).is_not_null())
            has_any = has_any | ((pl.col("type") == type_name) & has_id)
    return has_any


def _is_reissued(attributes: tuple[str, ...]) -> pl.Expr:
    """Return an expression that is true if the doc_id of a record stands for several documents.

    An example is a tool that numbers the results of each search 1, 2, 3. Documents are distinguished by item ids, pages, types
    and distinguishing fields.
    """
    distinguishing: set[str] = set()
    for kind in TYPES.values():
        distinguishing |= {*kind.item_ids, *kind.reject} - kind.lenient_ids

    is_named = pl.col("type").is_in(document_types.NAMED_BY_URL)
    is_specific = ~pl.col("type").is_in([document_types.GENERIC.name, "web_page", "file"])
    names = sorted(distinguishing & set(attributes))
    page = pl.when(is_named).then("page")
    specific_type = pl.when(is_specific).then("type")
    differs = []
    for value in (page, specific_type, *map(pl.col, names)):
        has_several = value.drop_nulls().n_unique() > 1
        differs.append(has_several.over("scope", "doc_id"))
    return pl.col("doc_id").is_not_null() & pl.any_horizontal(differs)
