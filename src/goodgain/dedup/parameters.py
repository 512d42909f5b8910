"""Tables of URL parameters, and of names in hosts and paths: which select a page, and which only track its visitor."""

from __future__ import annotations

import re

__all__ = [
    "INDEX_NAMES",
    "NO_ADDRESS",
    "PAGE_NUMBERS",
    "SELECTING",
    "START_PAGES",
    "VIEW_LABELS",
    "is_tracking",
]

#: Parameters that identify the visitor or the referring page, and never select content.
_TRACKING = frozenset(
    """
    gclid gclsrc dclid wbraid gbraid fbclid msclkid yclid ysclid twclid ttclid li_fat_id igshid igsh epik rdt_cid
    srsltid mc_cid mc_eid mkt_tok ref_src ref_url _ga _gl _gac _hsenc _hsmi __hstc __hssc __hsfp hsctatracking
    vero_id vero_conv oly_enc_id oly_anon_id wt_mc wt.mc_id s_cid cmpid zanpid spm trk trkcampaign rb_clickid
    __s _openstat _branch_match_id ga_source ga_medium ga_campaign ga_term ga_content click_id clickid
    jsessionid phpsessid sessionid session_id aspsessionid cfid cftoken zenid oscsid
    """.split()  # noqa: SIM905 - a table of words reads better as text
)
_TRACKING_PREFIXES = ("utm_", "pk_", "mtm_", "piwik_", "matomo_", "hsa_", "aspsessionid", "ml_subscriber")

#: Names that hold a session in one site and an article in another: a session only if the value is a token.
_SESSION_IF_TOKEN = frozenset({"sid", "session", "s", "token", "sess"})
_TOKEN = re.compile(r"(?=.*\d)(?:[0-9A-Za-z_-]{16,}|(?=.*[A-Za-z])[0-9A-Za-z]{8,})")

#: Parameters that select content: two values are two pages.
SELECTING = frozenset(
    """
    id p page v article item doc q lang version
    article_id articleid aid post post_id pid story story_id news newsid item_id itemid product product_id productid
    sku isbn asin doc_id docid document file filename path title section chapter part pageno page_id pageid paged pg
    offset start date year month locale hl language l ver rev revision oldid curid diff action query search s keyword
    cat category tag topic t_id thread threadid tid showtopic showthread msg message user username profile event
    event_id eventid video video_id videoid entry entry_id node nid key record recordid
    """.split()  # noqa: SIM905 - a table of words reads better as text
)
#: Of these, the numbers of pages: absent and 1 are the same page.
PAGE_NUMBERS = ("p", "page")

#: Labels of hosts that show the same site in another view, and file names that servers use for a folder itself.
VIEW_LABELS = frozenset({"www", "m", "mobile", "amp"})
INDEX_NAMES = re.compile(r"(?:index|default)\.(?:html?|xhtml|shtml|php\d?|aspx?|jsp|cfm|cgi|pl)", re.IGNORECASE)

#: Paths that are a site's or an application's first page, whatever is shown on it.
START_PAGES = frozenset({"", "/home", "/start", "/main", "/index", "/default"})

#: Schemes of URLs that hold content or code, or belong to one browser, instead of naming a page.
NO_ADDRESS = frozenset({"javascript", "data", "about", "blob", "vbscript", "view-source", "chrome"})


def is_tracking(name: str, value: str) -> bool:
    """Return whether a parameter (its name in lower case) is about the visit and not about the page."""
    if name in _TRACKING or name.startswith(_TRACKING_PREFIXES):
        return True
    return name in _SESSION_IF_TOKEN and _TOKEN.fullmatch(value) is not None
