"""The table of document types: the ids that identify a result, the fields that distinguish two, and the weights.

A new type is one `DocumentType` in `_ROWS`; a field that is not plain text also needs an entry in `_FIELD_KINDS`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class DocumentType:
    """One row of the table of types.

    Names of fields are names in `fields`, or `title`, `snippet` and `parent` (the parent's doc_id, or its URL).

    Attributes:
        item_ids: names in `ids`; equal values identify a document, different ones separate two.
        lenient_ids: the item ids whose differences do not count.
        further_keys: sets of fields that make two results candidates if all of them agree.
        required: fields that must agree before agreement of the others counts.
        reject: fields whose differences separate two documents.
        weights: what the agreement of a field adds; two results with a sum of 1 are one document.
        title: the field that is the title of this type.
        url: what a URL of this type names: the item, the item if its path goes beyond a start page, or nothing.
        goes_with: less specific types that a result of this type may be compared with.
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

#: From the least specific to the most: a pair of two compatible types is compared as the later one.
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

#: How the values of an id or field are made comparable (see normalisation.py).
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
_ID_KINDS: dict[str, Kind] = {name: "mailbox" if name == "address" else "id" for row in _ROWS for name in row.item_ids}

#: The kind of each id and field; a name that is not here is `text`.
KINDS: Mapping[str, Kind] = _ID_KINDS | {name: kind for kind, names in _FIELD_KINDS.items() for name in names}

#: Our name -> its names in logs; other spellings (FileId, fileId, file-id) are left to `canonical_name`.
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

#: Name in logs -> our name.
SYNONYMS: Mapping[str, str] = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings}

#: Between `File` and `Id` in `FileId`, and between `HTTP` and `Server` in `HTTPServer`.
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SEPARATORS = re.compile(r"[\s\-.:/]+")


def canonical_name(name: str) -> str:
    """Return the snake_case name that the tables use for a type, an id or a field.

    >>> canonical_name("FileId"), canonical_name("last-modified time"), canonical_name("receivedDateTime")
    ('file_id', 'modified_time', 'received')
    """
    spelled = snake_case(name)
    return SYNONYMS.get(spelled, spelled)


def snake_case(name: str, *, separators: re.Pattern[str] = _SEPARATORS) -> str:
    """Return a name in lower case with `_` between its words; `separators` are the signs that become `_`.

    >>> snake_case("FileId"), snake_case("file id")
    ('file_id', 'file_id')
    """
    return separators.sub("_", _WORD_STARTS.sub("_", name).lower()).strip("_")


def find_pair_type(first: str, second: str) -> DocumentType | None:
    """Return the type that results of two types are compared as; None if the types are incompatible."""
    low, high = sorted((first, second), key=_SPECIFICITY.__getitem__)
    row = TYPES[high]
    return row if low == high or low in row.goes_with else None


def list_comparable_types(name: str) -> tuple[DocumentType, ...]:
    """Return the types that a result of this type may be compared as, its own first."""
    held = {row.name: row for other in TYPES if (row := find_pair_type(name, other)) is not None}
    return (held.pop(name), *held.values())
