"""Recognises files of kinds that goodgain does not read, by their first bytes: databases, spreadsheets, archives, UTF-16 text."""

import re
from typing import NamedTuple


class OtherKind(NamedTuple):
    """A kind of file: `name` completes "is ...", and `remedy` says what to do."""

    name: str
    remedy: str


_EXPORT = "Export its table as CSV or JSON Lines"
_UNPACK = "Unpack it, and give the file inside"
_SAVE_TEXT = "Save it as plain text in UTF-8"
_SAVE_UTF_8 = "Save it as UTF-8 (in Excel: CSV UTF-8)"
_RENAME = "Rename it to end in"

#: Pattern of the first bytes -> kind. No text that goodgain reads begins in one of these ways.
_KINDS: dict[bytes, OtherKind] = {
    rb"SQLite format 3\0": OtherKind("an SQLite database", _EXPORT),
    rb".{8}DUCK.\0{7}": OtherKind("a DuckDB database", _EXPORT),
    rb"PK\x03\x04(?=.{26}(?:\[Content_Types\]|_rels|docProps|xl/))": OtherKind("an Excel workbook", _EXPORT),
    rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": OtherKind("an old Excel or Office file", _EXPORT),
    rb"PK\x03\x04": OtherKind("a zip archive", _UNPACK),
    rb"BZh[1-9]1AY&SY": OtherKind("bzip2 data", f"{_UNPACK}; .gz and .zst need no unpacking"),
    rb"\xfd7zXZ\0": OtherKind("xz data", f"{_UNPACK}; .gz and .zst need no unpacking"),
    rb"\x04\x22\x4d\x18": OtherKind("lz4 data", f"{_UNPACK}; .gz and .zst need no unpacking"),
    rb"7z\xbc\xaf\x27\x1c": OtherKind("a 7z archive", _UNPACK),
    rb".{257}ustar(?:\0|  \0)": OtherKind("a tar archive", _UNPACK),
    rb"\x89HDF\r\n\x1a\n": OtherKind("an HDF5 file", _EXPORT),
    rb"\x93NUMPY": OtherKind("a NumPy array", _EXPORT),
    rb"Obj\x01": OtherKind("an Avro file", _EXPORT),
    rb"FEA1\0": OtherKind("a Feather file of version 1", "Write it again as Feather 2 or Parquet"),
    rb"%PDF": OtherKind("PDF", _SAVE_TEXT),
    rb"\{\\rtf": OtherKind("RTF of a word processor", _SAVE_TEXT),
    rb"\s*<(?i:!doctype\s+html|html)\b": OtherKind("a web page (HTML)", "Download the file itself (on GitHub: Raw)"),
    rb"version https://git-lfs": OtherKind("a pointer of Git LFS", "Get the file itself with git lfs pull"),
    rb"\xff\xfe\0\0|\0\0\xfe\xff": OtherKind("UTF-32 text", _SAVE_UTF_8),
    rb"\xff\xfe|\xfe\xff|(?:[^\0]\0){8}|(?:\0[^\0]){8}": OtherKind("UTF-16 text", _SAVE_UTF_8),
}
#: Kinds that goodgain reads, under other names.
_MISNAMED: dict[bytes, OtherKind] = {
    rb"PAR1\x15": OtherKind("Parquet data", f"{_RENAME} .parquet"),
    rb"ARROW1\0\0": OtherKind("Arrow data", f"{_RENAME} .arrow"),
}
#: The most bytes that a pattern looks at: a tar archive has its sign at byte 257.
_LONGEST_SIGN = 300


def find_other_kind(begin: bytes, *, is_text: bool = True) -> OtherKind | None:
    """Return the kind of a file that goodgain does not read, from its first bytes; None for any other file.

    With `is_text`, Parquet and Arrow are such kinds too: the file has the name of a text.

    >>> find_other_kind(b"SQLite format 3\\0...").name
    'an SQLite database'
    >>> find_other_kind(b"q 0 d 1")
    """
    kinds = _KINDS | _MISNAMED if is_text else _KINDS
    for pattern, kind in kinds.items():
        if re.match(pattern, begin[:_LONGEST_SIGN], re.DOTALL):
            return kind
    return None
