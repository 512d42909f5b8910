"""Normalises texts, and the values of ids and fields according to their kinds."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import polars as pl

from goodgain.formats.urls import normalise_url
from goodgain.logs.dedup.document_types import KINDS, Kind

#: The separator of several values of one name.
SEVERAL = "\x1f"

#: Scripts that are written without blanks: Thai, Lao, Tibetan, Burmese, Khmer, kana, Bopomofo, Han.
UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)

#: Tags between words become a blank; tags inside words (search engines highlight hits with them) are dropped.
_BLOCK_TAGS = (
    r"(?i)</?(?:br|p|div|li|ul|ol|dl|dt|dd|tr|td|th|table|tbody|thead|h[1-6]|hr|pre|blockquote|section)(?:\s[^<>]*)?/?>"
)
_INLINE_TAGS = (
    r"(?i)</?(?:b|strong|em|i|u|s|mark|span|font|a|sub|sup|small|code|tt|q|abbr|highlight|hit|hl|c0|ddd)(?:\s[^<>]*)?/?>"
    r"|\*\*"
)
#: The common entities in snippets; a full table would also decode the examples of a page about HTML.
_ENTITIES = (
    {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&hellip;": "..."}
    | dict.fromkeys(("&quot;", "&#34;"), '"')
    | dict.fromkeys(("&#39;", "&#x27;", "&#039;", "&apos;"), "'")
    | dict.fromkeys(("&nbsp;", "&#160;"), " ")
)

_GUID = re.compile(r"\{?[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}\}?")
_ADDRESS = re.compile(r"[^\s@<>]+@[^\s@<>]+")
_NAMED_ADDRESS = re.compile(r".*<\s*(?:mailto:)?([^\s@<>]+@[^\s@<>]+)\s*>\s*", re.DOTALL)
_NUMBER = re.compile(r"[+-]?0*(\d+)(?:\.0*)?")
_EPOCH = re.compile(r"(\d{9,10})(?:\.\d*)?|(\d{12,13})")


def normalise_texts(texts: pl.Series) -> pl.Series:
    """Return texts in NFKC, casefolded, without markup, with collapsed white space; null if nothing is left."""
    values = texts.unique().drop_nulls()
    ascii_only = values.str.len_bytes() == values.str.len_chars()
    plain, other = values.filter(ascii_only), values.filter(~ascii_only)
    # Casefolding can undo the normal form: it is applied twice. Polars has no casefold.
    casefolded = (unicodedata.normalize("NFKC", text).casefold() for text in other.to_list())
    folded = pl.Series([unicodedata.normalize("NFKC", text) for text in casefolded], dtype=pl.String)
    cleaned = (
        pl.concat([plain.str.to_lowercase(), folded.str.replace_all(r"\p{Cf}", "")])
        .str.replace_all(_BLOCK_TAGS, " ")
        .str.replace_all(_INLINE_TAGS, "")
        .str.replace_many(_ENTITIES)
        .str.replace_all(r"[\s\x00-\x1f\x7f]{2,}|[\s\x00-\x1f\x7f&&[^ ]]", " ")
        .str.strip_chars()
    )
    return _replace(texts, pl.concat([plain, other]), cleaned)


def _replace(values: pl.Series, old: pl.Series, new: pl.Series) -> pl.Series:
    """Replace old values by new ones, empty ones by null."""
    pairs = pl.DataFrame({"value": old, "new": new})
    found = values.to_frame("value").join(pairs, on="value", how="left", maintain_order="left")
    return found.select(pl.when(pl.col("new") != "").then("new")).to_series()


def text_length(text: pl.Expr) -> pl.Expr:
    """Return the length of a text in characters; characters of scripts without blanks count double."""
    return (text.str.len_chars() + text.str.count_matches(f"[{UNSPACED}]")).fill_null(0)


def normalise_values(names: pl.Series, values: pl.Series) -> pl.Series:
    """Normalise each value by the kind of its name; null if nothing is left."""
    kinds = names.replace_strict(KINDS, default="text", return_dtype=pl.String)
    rows = pl.DataFrame({"kind": kinds, "normal": values}).with_row_index("place")
    parts = [
        part.select("place", normal=normalise_kind(part["normal"], str(kind)))  # type: ignore[arg-type] # a kind
        for (kind,), part in rows.group_by("kind")
    ]
    return pl.concat([rows.clear().select("place", "normal"), *parts]).sort("place")["normal"]


def normalise_kind(values: pl.Series, kind: Kind) -> pl.Series:
    """Normalise values of one kind; null if nothing is left. Of ids only GUIDs and mail addresses change."""
    if kind == "text":
        return normalise_texts(values)
    unique = values.unique().drop_nulls()
    return _replace(values, unique, pl.Series(map(_NORMALISE[kind], unique.to_list()), dtype=pl.String))


def _normalise_id(value: str) -> str:
    value = value.strip()
    if _GUID.fullmatch(value):
        return value.strip("{}").casefold()
    bare = value.removeprefix("<").removesuffix(">")  # mail systems write message ids with or without them
    return bare.casefold() if _ADDRESS.fullmatch(bare) else value


def _normalise_mailbox(value: str) -> str:
    """Return the mail address in a value (`Ann <ann@example.org>`), else the name."""
    if named := _NAMED_ADDRESS.fullmatch(value):
        return named[1].casefold()
    return " ".join(value.casefold().removeprefix("mailto:").split())


def _normalise_mailboxes(value: str) -> str:
    return SEVERAL.join(sorted({_normalise_mailbox(part) for part in re.split(r"[;,]", value) if part.strip()}))


def _normalise_time(value: str) -> str:
    """Return a time in UTC (the default zone), to the second: sources round fractions differently."""
    value = value.strip()
    if epoch := _EPOCH.fullmatch(value):
        seconds = int(epoch[1]) if epoch[1] else int(epoch[2]) // 1000
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except (ValueError, TypeError, IndexError):
            return " ".join(value.casefold().split())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:  # the zone moves year 1 or 9999 out of range
        return value


def _normalise_number(value: str) -> str:
    value = value.strip()
    match = _NUMBER.fullmatch(value)
    return ("-" if value.startswith("-") else "") + match[1] if match else value.casefold()


_NORMALISE: Mapping[Kind, Callable[[str], str | None]] = {
    "id": _normalise_id,
    "time": _normalise_time,
    "number": _normalise_number,
    "mailbox": _normalise_mailbox,
    "mailboxes": _normalise_mailboxes,
    "extension": lambda value: value.strip().casefold().removeprefix("."),
    "url": normalise_url,
}
