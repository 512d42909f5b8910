"""Normalises the values of ids and fields, each according to its kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import polars as pl

from goodgain.dedup.texts import normalise_texts
from goodgain.dedup.types import KINDS, Kind
from goodgain.dedup.urls import normalise_url

__all__ = ["SEVERAL", "normalise_ids", "normalise_values"]

#: The separator of several values of one name.
SEVERAL = "\x1f"

_GUID = re.compile(r"\{?[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}\}?")
_ADDRESS = re.compile(r"[^\s@<>]+@[^\s@<>]+")
_NAMED_ADDRESS = re.compile(r".*<\s*(?:mailto:)?([^\s@<>]+@[^\s@<>]+)\s*>\s*", re.DOTALL)
_NUMBER = re.compile(r"[+-]?0*(\d+)(?:\.0*)?")
_EPOCH = re.compile(r"(\d{9,10})(?:\.\d*)?|(\d{12,13})")


def normalise_values(names: pl.Series, values: pl.Series) -> pl.Series:
    """Normalise each value by the kind of its name; null if nothing is left."""
    pairs = pl.DataFrame({"name": names, "value": values})
    unique = pairs.unique()
    kinds = unique["name"].replace_strict(KINDS, default="text", return_dtype=pl.String)
    parts = []
    for (kind,), part in unique.with_columns(kind=kinds).group_by("kind"):
        normal = _normalise_kind(part["value"], str(kind))  # type: ignore[arg-type] # the kinds stand in KINDS
        parts.append(part.select("name", "value", normal=normal))
    if not parts:
        return pl.Series([], dtype=pl.String)
    return pairs.join(pl.concat(parts), on=["name", "value"], how="left", maintain_order="left")["normal"]


def normalise_ids(values: pl.Series) -> pl.Series:
    """Normalise ids: GUIDs and mail addresses are casefolded, all others stay as they are."""
    return _normalise_kind(values, "id")


def _normalise_kind(values: pl.Series, kind: Kind) -> pl.Series:
    if kind == "text":
        return normalise_texts(values)
    normalise = _NORMALISE[kind]
    unique = values.unique().drop_nulls()
    normal = pl.Series([normalise(value) or None for value in unique.to_list()], dtype=pl.String)
    pairs = pl.DataFrame({"raw": unique, "normal": normal})
    return values.to_frame("raw").join(pairs, on="raw", how="left", maintain_order="left")["normal"]


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
    """Return a time in UTC, to the second, as sources round fractions differently. Without a zone it is UTC."""
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
    except OverflowError:  # year 1 or 9999, and a zone that moves it out of range
        return value


def _normalise_number(value: str) -> str:
    value = value.strip()
    match = _NUMBER.fullmatch(value)
    return ("-" if value.startswith("-") else "") + match[1] if match else value.casefold()


def _normalise_extension(value: str) -> str:
    return value.strip().casefold().removeprefix(".")


def _normalise_url(value: str) -> str:
    return normalise_url(value) or ""


_NORMALISE: Mapping[Kind, Callable[[str], str]] = {
    "id": _normalise_id,
    "time": _normalise_time,
    "number": _normalise_number,
    "mailbox": _normalise_mailbox,
    "mailboxes": _normalise_mailboxes,
    "extension": _normalise_extension,
    "url": _normalise_url,
}
