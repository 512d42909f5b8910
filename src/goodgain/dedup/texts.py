"""Normalises texts, and measures their length and overlap."""

from __future__ import annotations

import re
import unicodedata
from array import array

import numpy as np
import numpy.typing as npt
import polars as pl

__all__ = ["measure_overlap", "normalise_texts", "text_length"]

#: Scripts that are written without blanks: Thai, Lao, Tibetan, Burmese, Khmer, kana, Bopomofo, Han.
_UNSPACED = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)

#: Tags that part words become a blank; tags inside words (search engines highlight hits with them) are dropped.
_BLOCK_TAGS = (
    r"(?i)</?(?:br|p|div|li|ul|ol|dl|dt|dd|tr|td|th|table|tbody|thead|h[1-6]|hr|pre|blockquote|section)(?:\s[^<>]*)?/?>"
)
_INLINE_TAGS = (
    r"(?i)</?(?:b|strong|em|i|u|s|mark|span|font|a|sub|sup|small|code|tt|q|abbr|highlight|hit|hl|c0|ddd)(?:\s[^<>]*)?/?>"
    r"|\*\*"
)
#: The entities that snippets have; a full table would also decode what a page about HTML writes.
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
#: Tokens of a gram: long enough that two texts seldom share one by chance.
_GRAM_SIZE = 5
#: The golden ratio in 64 bits, as in splitmix64: it spreads the hashes of tokens over all bits.
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def normalise_texts(texts: pl.Series) -> pl.Series:
    """Return texts in NFKC, casefolded, without markup, with collapsed white space; null if nothing is left."""
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
    # Casefolding can undo the normal form, so it is applied twice. Polars has no casefold.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def text_length(text: pl.Expr) -> pl.Expr:
    """Return the length of a text in characters, those of scripts written without blanks counted double."""
    return (text.str.len_chars() + text.str.count_matches(f"[{_UNSPACED}]")).fill_null(0)


def measure_overlap(
    texts: pl.Series, left: npt.NDArray[np.intp], right: npt.NDArray[np.intp]
) -> npt.NDArray[np.float64]:
    """Return for each pair of texts the share of the smaller one's 5-grams that the other has too."""
    used, place = np.unique(np.concatenate([left, right]), return_inverse=True)
    grams, bounds = _hash_grams(texts.gather(used).to_list())
    shares = np.zeros(len(left))
    for number, pair in enumerate(zip(place[: len(left)].tolist(), place[len(left) :].tolist(), strict=True)):
        small, large = sorted((grams[bounds[text] : bounds[text + 1]] for text in pair), key=len)
        if len(small):
            found = np.searchsorted(large, small)
            shares[number] = np.count_nonzero(large[np.minimum(found, len(large) - 1)] == small) / len(small)
    return shares


def _hash_grams(texts: list[str]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.intp]]:
    """Return the distinct 5-grams of all texts as hashes, sorted within each text, and the bounds of each text.

    A text of fewer tokens is one gram.
    """
    tokens, counts = array("q"), []
    for text in texts:
        before = len(tokens)
        tokens.extend(map(hash, _TOKENS.findall(text)))
        counts.append(len(tokens) - before)
    hashes = np.frombuffer(tokens, dtype=np.uint64) if tokens else np.empty(0, dtype=np.uint64)
    count = np.array(counts, dtype=np.intp)
    width = np.minimum(_GRAM_SIZE, count)
    text_of = np.repeat(np.arange(len(texts)), count)
    position = np.arange(len(hashes)) - np.repeat(np.cumsum(count) - count, count)
    begin = np.flatnonzero(position <= (count - width)[text_of])
    owner = text_of[begin]
    grams = np.zeros(len(begin), dtype=np.uint64)
    for step in range(_GRAM_SIZE):
        inside = step < width[owner]
        mixed = (grams[inside] ^ hashes[begin[inside] + step]) * _HASH_FACTOR
        grams[inside] = mixed ^ (mixed >> np.uint64(29))
    order = np.lexsort((grams, owner))
    owner, grams = owner[order], grams[order]
    fresh = np.ones(len(grams), dtype=np.bool_)
    fresh[1:] = (owner[1:] != owner[:-1]) | (grams[1:] != grams[:-1])
    return grams[fresh], np.searchsorted(owner[fresh], np.arange(len(texts) + 1))
