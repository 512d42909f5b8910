"""Texts made comparable: one spelling, their length, and how much two share."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["normalise_texts", "shared_grams", "text_length"]

#: Scripts that are written without blanks: Thai, Lao, Tibetan, Burmese, Khmer, kana, Bopomofo, Han.
_UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)

_BLOCK_TAGS = (
    r"(?i)</?(?:br|p|div|li|ul|ol|dl|dt|dd|tr|td|th|table|tbody|thead|h[1-6]|hr|pre|blockquote|section)(?:\s[^<>]*)?/?>"
)
_INLINE_TAGS = (
    r"(?i)</?(?:b|strong|em|i|u|s|mark|span|font|a|sub|sup|small|code|tt|q|abbr|highlight|hit|hl|c0|ddd)(?:\s[^<>]*)?/?>"
    r"|\*\*"
)
_ENTITIES = {
    "&amp;": "&",
    "&lt;": "<",
    "&gt;": ">",
    "&quot;": '"',
    "&#34;": '"',
    "&#39;": "'",
    "&#x27;": "'",
    "&#039;": "'",
    "&apos;": "'",
    "&nbsp;": " ",
    "&#160;": " ",
    "&hellip;": "...",
}
_TOKENS = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_GRAM = 5
_MIX = np.uint64(0x9E3779B97F4A7C15)


def normalise_texts(texts: pl.Series) -> pl.Series:
    """Each text in NFKC and casefolded, without markup, its white space collapsed; null if nothing is left."""
    values = texts.unique().drop_nulls()
    ascii_only = values.str.len_bytes() == values.str.len_chars()
    plain, other = values.filter(ascii_only), values.filter(~ascii_only)
    folded = pl.Series([_fold(text) for text in other.to_list()], dtype=pl.String)
    cleaned = pl.select(
        pl.concat([plain.str.to_lowercase(), folded.str.replace_all(r"\p{Cf}", "")])
        .str.replace_all(_BLOCK_TAGS, " ")
        .str.replace_all(_INLINE_TAGS, "")
        .str.replace_many(_ENTITIES)
        .str.replace_all(r"[\s\x00-\x1f\x7f]{2,}|[\s\x00-\x1f\x7f&&[^ ]]", " ")
        .str.strip_chars()
    ).to_series()
    pairs = pl.DataFrame({"raw": pl.concat([plain, other]), "text": cleaned})
    return (
        texts.to_frame("raw")
        .join(pairs, on="raw", how="left", maintain_order="left")
        .select(pl.when(pl.col("text") != "").then("text"))
        .to_series()
    )


def _fold(text: str) -> str:
    # Casefolding can undo the normal form, so it is made again; Polars knows no casefold.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def text_length(text: pl.Expr) -> pl.Expr:
    """The length of a text in characters, those of scripts written without blanks counted double."""
    return (text.str.len_chars() + text.str.count_matches(f"[{_UNSPACED}]")).fill_null(0)


def shared_grams(texts: pl.Series, left: npt.NDArray[np.intp], right: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """For each pair of texts, the share of the smaller one's 5-grams that the other has too."""
    grams: dict[int, npt.NDArray[np.uint64]] = {}
    for place in np.unique(np.concatenate([left, right])).tolist():
        grams[place] = _grams(texts[place])
    shares = np.zeros(len(left))
    for number, (one, two) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        small, large = sorted((grams[one], grams[two]), key=len)
        if len(small):
            places = np.searchsorted(large, small)
            shares[number] = np.count_nonzero(large[np.minimum(places, len(large) - 1)] == small) / len(small)
    return shares


def _grams(text: str) -> npt.NDArray[np.uint64]:
    """The distinct 5-grams of a text as sorted hashes; a text of fewer tokens is one gram."""
    tokens = _TOKENS.findall(text)
    if not tokens:
        return np.empty(0, dtype=np.uint64)
    hashes = np.array([hash(token) for token in tokens], dtype=np.int64).view(np.uint64)
    width = min(_GRAM, len(hashes))
    grams = np.zeros(len(hashes) - width + 1, dtype=np.uint64)
    for step in range(width):
        grams = (grams ^ hashes[step : len(hashes) - width + 1 + step]) * _MIX
        grams ^= grams >> np.uint64(29)
    return np.unique(grams)
