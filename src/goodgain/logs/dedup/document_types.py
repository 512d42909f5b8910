"""Defines the table of document types, and normalises the values of their ids and fields.

The table has the ids that identify a result, the fields that distinguish two results, and the weights of fields. A new type is one
`DocumentType` in `_ROWS`; a field that is not plain text also needs an entry in `_FIELD_KINDS`.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

import polars as pl

from goodgain.formats.urls import normalise_url


@dataclass(frozen=True)
class DocumentType:
    """One row of the table of types.

    A field is a name in the column `fields`, or `title`, `snippet` or `parent` (the parent's doc_id or URL).

    Attributes:
        item_ids: names in the column `ids`. Equal values identify a document; different values separate two documents.
        lenient_ids: the item ids whose differences do not separate documents.
        further_keys: sets of fields. Two results that agree in all fields of a set are compared.
        required: fields that must agree; otherwise, the weights of other fields do not count.
        reject: fields or ids whose differences separate two documents.
        weights: the weight of each field. Two results are one document if the weights of the fields that agree sum to 1 or more.
        title: the field that serves as the title of results of this type.
        url: whether the URL of a result names one item: always, only if it is not a start page's URL, or never.
        goes_with: less specific types whose results may be the same document as a result of this type.
    """

    name: str
    item_ids: tuple[str, ...] = ()
    lenient_ids: frozenset[str] = frozenset()
    further_keys: tuple[tuple[str, ...], ...] = ()
    required: tuple[str, ...] = ()
    reject: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    title: str = "title"
    url: Literal["item", "item beyond the start page", "nothing"] = "item"
    goes_with: tuple[str, ...] = ("generic",)


GENERIC = DocumentType("generic", weights={"title": 0.5, "snippet": 0.6})

#: The type of passages at level "document": each counts as the document it was cut from.
PARENT = DocumentType(
    "passage_parent", item_ids=("parent",), weights={"title": 0.5}, goes_with=("generic", "web_page", "file")
)

#: From the least to the most specific type. A pair of two compatible types is compared as the later type.
_ROWS = (
    GENERIC,
    DocumentType("web_page", weights={"title": 0.5, "snippet": 0.6, "published": 0.3, "author": 0.2}),
    DocumentType(
        "file",
        item_ids=("file_id", "unique_id", "item_id"),
        further_keys=(("file_name",),),
        reject=("file_name", "file_type"),
        weights={
            "title": 0.4,
            "file_name": 0.4,
            "snippet": 0.6,
            "modified_time": 0.4,
            "author": 0.2,
            "modified_by": 0.2,
            "file_type": 0.1,
        },
        goes_with=("generic", "web_page"),
    ),
    DocumentType(
        "email",
        item_ids=("message_id",),
        further_keys=(("received", "sender"),),
        reject=("received", "sender", "subject"),
        weights={"received": 0.7, "sender": 0.3, "recipients": 0.3, "subject": 0.3, "snippet": 0.4},
        title="subject",
        url="nothing",
    ),
    DocumentType(
        "event",
        item_ids=("occurrence_id",),
        further_keys=(("start", "end", "title"),),
        required=("start", "end"),
        reject=("start", "end", "organizer", "title"),
        weights={"start": 0.25, "end": 0.25, "title": 0.5, "organizer": 0.5, "snippet": 0.4},
        url="nothing",
    ),
    DocumentType(
        "message",
        item_ids=("message_id",),
        further_keys=(("sender", "sent"),),
        reject=("sent", "sender", "channel"),
        weights={"sent": 0.3, "sender": 0.3, "channel": 0.2, "snippet": 0.7},
        url="item beyond the start page",
    ),
    DocumentType(
        "person",
        item_ids=("alias", "principal_name", "address"),
        lenient_ids=frozenset({"address"}),
        # Names alone are too short for keys. Two persons whose fields agree enough share one of these.
        further_keys=(("title", "company"), ("title", "department")),
        reject=("alias", "principal_name"),
        weights={"display_name": 0.5, "department": 0.2, "company": 0.2, "office": 0.2, "job_title": 0.2},
        title="display_name",
        url="item beyond the start page",
    ),
    DocumentType(
        "passage",
        item_ids=("chunk_id",),
        further_keys=(("parent", "offset"), ("parent", "chunk"), ("parent", "snippet")),
        required=("parent",),
        reject=("parent", "offset", "chunk"),
        weights={"parent": 0.4, "offset": 0.6, "chunk": 0.6, "snippet": 0.6},
        url="nothing",
        goes_with=(),
    ),
    DocumentType(
        "transcript",
        item_ids=("occurrence_id",),
        further_keys=(("start", "title"),),
        reject=("start", "end"),
        weights={"title": 0.4, "start": 0.4, "end": 0.2, "snippet": 0.6},
    ),
    PARENT,
)

TYPES: Mapping[str, DocumentType] = {row.name: row for row in _ROWS}

#: The types whose URL names the item, and those whose URL does so only beyond a start page.
NAMED_BY_URL, NAMED_BEYOND_START = (
    [row.name for row in _ROWS if row.url == url] for url in ("item", "item beyond the start page")
)

_SPECIFICITY = {name: place for place, name in enumerate(TYPES)}

#: How the values of an id or field become comparable.
Kind = Literal["id", "text", "time", "number", "mailbox", "mailboxes", "extension", "url"]

_FIELD_KINDS: dict[Kind, tuple[str, ...]] = {
    "time": ("received", "sent", "start", "end", "published", "modified_time"),
    "mailbox": ("sender", "organizer", "author", "modified_by"),
    "mailboxes": ("recipients",),
    "extension": ("file_type",),
    "number": ("offset", "chunk"),
    "id": ("parent",),
    "url": ("parent_url",),
}
_KINDS_OF_IDS: dict[str, Kind] = {name: "id" for row in _ROWS for name in row.item_ids}
_KINDS_OF_IDS["address"] = "mailbox"
_KINDS_OF_FIELDS = {name: kind for kind, names in _FIELD_KINDS.items() for name in names}

#: The kind of each id and field; a name that is not here is `text`.
KINDS: Mapping[str, Kind] = _KINDS_OF_IDS | _KINDS_OF_FIELDS

#: Name in the table -> names in logs. Other spellings (FileId, fileId, file-id) are left to `canonical_name`.
_SPELLINGS = {
    "item_id": ("drive_item_id",),
    "message_id": ("internet_message_id",),
    "received": ("received_time", "received_date_time", "date_time_received"),
    "sent": ("date_time_sent", "sent_date_time"),
    "sender": ("from",),
    "recipients": ("to",),
    "start": ("start_time", "start_date_time"),
    "end": ("end_time", "end_date_time"),
    "organizer": ("organiser",),
    "published": ("published_date", "date_published"),
    "modified_time": ("last_modified", "last_modified_time", "last_modified_date_time"),
    "modified_by": ("last_modified_by",),
    "file_name": ("filename",),
    "file_type": ("filetype", "file_extension", "extension"),
    "address": ("email_address", "mail"),
    "principal_name": ("user_principal_name", "upn"),
    "office": ("office_location",),
    "company": ("company_name",),
    "parent": ("parent_id", "parent_doc_id"),
    "parent_url": ("parent_uri",),
    "chunk": ("chunk_index", "chunk_number"),
}

SYNONYMS: Mapping[str, str] = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings}

#: Between `File` and `Id` in `FileId`, and between `HTTP` and `Server` in `HTTPServer`.
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[\s\-.:/]+")


def canonical_name(name: str) -> str:
    """Return the canonical name of a type, an id or a field: its snake_case form, with synonyms replaced.

    >>> canonical_name("FileId"), canonical_name("last-modified time"), canonical_name("receivedDateTime")
    ('file_id', 'modified_time', 'received')
    """
    spelled = snake_case(name)
    return SYNONYMS.get(spelled, spelled)


def snake_case(name: str, *, separators: re.Pattern[str] = _SEPARATORS) -> str:
    """Return a name in lower case, with `_` between words. Matches of `separators` become `_`.

    >>> snake_case("FileId"), snake_case("file id")
    ('file_id', 'file_id')
    """
    return separators.sub("_", _WORD_STARTS.sub("_", name).lower()).strip("_")


def find_pair_type(first: str, second: str) -> DocumentType | None:
    """Return the type whose rules compare a result of type `first` with one of type `second`; None for incompatible types."""
    low, high = sorted((first, second), key=_SPECIFICITY.__getitem__)
    row = TYPES[high]
    is_compatible = low == high or low in row.goes_with
    return row if is_compatible else None


def list_comparable_types(name: str) -> tuple[DocumentType, ...]:
    """Return the types whose rules may apply to a result of the type `name`. The first is this type itself."""
    pair_types = [find_pair_type(name, other) for other in TYPES]
    further = {kind.name: kind for kind in pair_types if kind is not None and kind.name != name}
    return (TYPES[name], *further.values())


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
    """Normalise texts: NFKC, casefolded, without markup, with collapsed white space. A text with nothing left becomes null."""
    values = texts.unique().drop_nulls()
    is_ascii = values.str.len_bytes() == values.str.len_chars()
    ascii_texts, unicode_texts = values.filter(is_ascii), values.filter(~is_ascii)
    # Casefolding can undo the normal form: it is applied twice. Polars has no casefold.
    casefolded = [unicodedata.normalize("NFKC", text).casefold() for text in unicode_texts.to_list()]
    folded = pl.Series([unicodedata.normalize("NFKC", text) for text in casefolded], dtype=pl.String)

    lower_case = pl.concat([ascii_texts.str.to_lowercase(), folded.str.replace_all(r"\p{Cf}", "")])
    cleaned = (
        lower_case.str.replace_all(_BLOCK_TAGS, " ")
        .str.replace_all(_INLINE_TAGS, "")
        .str.replace_many(_ENTITIES)
        .str.replace_all(r"[\s\x00-\x1f\x7f]{2,}|[\s\x00-\x1f\x7f&&[^ ]]", " ")
        .str.strip_chars()
    )
    return _replace(texts, pl.concat([ascii_texts, unicode_texts]), cleaned)


def _replace(values: pl.Series, old: pl.Series, new: pl.Series) -> pl.Series:
    return values.replace_strict(old, new.replace("", None), default=None, return_dtype=pl.String)


def text_length(text: pl.Expr) -> pl.Expr:
    """Return the length of a text in characters. Scripts without spaces between words, such as Chinese, count double."""
    return (text.str.len_chars() + text.str.count_matches(f"[{UNSPACED}]")).fill_null(0)


def normalise_values(names: pl.Series, values: pl.Series) -> pl.Series:
    """Normalise each value by the kind (id, time, ...) of its field in `names`. A value with nothing left becomes null."""
    kinds = names.replace_strict(KINDS, default="text", return_dtype=pl.String)
    rows = pl.DataFrame({"kind": kinds, "normal": values}).with_row_index("place")
    parts = [rows.clear().select("place", "normal")]
    for (kind,), part in rows.group_by("kind"):
        normal = normalise_kind(part["normal"], str(kind))  # type: ignore[arg-type] # a kind
        parts.append(part.select("place", normal=normal))
    return pl.concat(parts).sort("place")["normal"]


def normalise_kind(values: pl.Series, kind: Kind) -> pl.Series:
    """Normalise values of one kind. Values with nothing left become null. Ids keep their case, except GUIDs and mail addresses."""
    if kind == "text":
        return normalise_texts(values)
    unique = values.unique().drop_nulls()
    normal = pl.Series(map(_NORMALISE[kind], unique.to_list()), dtype=pl.String)
    return _replace(values, unique, normal)


def _normalise_id(value: str) -> str:
    value = value.strip()
    if _GUID.fullmatch(value):
        return value.strip("{}").casefold()
    bare = value.removeprefix("<").removesuffix(">")  # mail systems write message ids with or without brackets
    return bare.casefold() if _ADDRESS.fullmatch(bare) else value


def _normalise_mailbox(value: str) -> str:
    if named := _NAMED_ADDRESS.fullmatch(value):
        return named[1].casefold()
    return " ".join(value.casefold().removeprefix("mailto:").split())


def _normalise_mailboxes(value: str) -> str:
    mailboxes = {_normalise_mailbox(part) for part in re.split(r"[;,]", value) if part.strip()}
    return SEVERAL.join(sorted(mailboxes))


def _normalise_time(value: str) -> str:
    """Convert a time to UTC (the default zone) and to whole seconds, because sources round fractions differently."""
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
    """Write a whole number without leading zeros, a plus sign or `.0`. Return any other text case-folded."""
    value = value.strip()
    match = _NUMBER.fullmatch(value)
    if not match:
        return value.casefold()
    sign = "-" if value.startswith("-") else ""
    return sign + match[1]


_NORMALISE: Mapping[Kind, Callable[[str], str | None]] = {
    "id": _normalise_id,
    "time": _normalise_time,
    "number": _normalise_number,
    "mailbox": _normalise_mailbox,
    "mailboxes": _normalise_mailboxes,
    "extension": lambda value: value.strip().casefold().removeprefix("."),
    "url": normalise_url,
}
