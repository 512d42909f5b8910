"""Pairs of web pages, files and untyped results, written by hand: the same document or not, and why."""

from tests.logs.dedup.writing import AR, CONSENT, DE, EN, FR, JA, KO, LONG, OTHER, RU, TH, ZH, Pair, result

_P = "https://example.org/news/river-levels"


def _page(
    url: str = _P, title: str | None = "River levels", snippet: str | None = EN, **more: object
) -> dict[str, object]:
    return result(type="web_page", url=url, title=title, snippet=snippet, **more)


def _urls(same: bool, reason: str, first: str, second: str) -> Pair:
    """Two addresses with nothing else that agrees."""
    return Pair(same, reason, _page(first, None, EN), _page(second, None, OTHER))


def _editions(same: bool, reason: str, first: str, second: str, *titles: str | None, text: str = OTHER) -> Pair:
    """Two addresses of a documentation site, with titles and other texts."""
    one, two = titles or ("Install the river tools", "Install the river tools")
    return Pair(same, reason, _page(first, one, EN), _page(second, two, text))


_SO, _DOCS = "https://stackoverflow.com", "https://docs.river.example"

PAIRS = [
    # Addresses that lead to one page.
    _urls(True, "utm parameters", _P, _P + "?utm_source=mail&utm_campaign=may"),
    _urls(True, "gclid", _P, _P + "?gclid=CjwKCAjw"),
    _urls(True, "fbclid", _P, _P + "?fbclid=IwAR0x9"),
    _urls(True, "msclkid beside a parameter that stays", _P + "?view=full", _P + "?view=full&msclkid=77aa"),
    _urls(True, "ref_src", _P, _P + "?ref_src=twsrc%5Etfw"),
    _urls(True, "a session in a parameter", _P + "?PHPSESSID=9d8e7f", _P),
    _urls(True, "a short session id", _P + "?sid=a81bc81b", _P + "?sid=6e0c34d7"),
    _urls(True, "a session in the path", "https://example.org/shop;jsessionid=1A2B3C", "https://example.org/shop"),
    _urls(True, "sid with a token is a session", _P + "?sid=9f86d081884c7d65", _P + "?sid=2c26b46b68ffc68f"),
    _urls(True, "other order of parameters", _P + "?a=1&b=2", _P + "?b=2&a=1"),
    _urls(True, "http and https", _P, _P.replace("https", "http")),
    _urls(True, "www", _P, _P.replace("example", "www.example")),
    _urls(True, "trailing slash", _P, _P + "/"),
    _urls(True, "an escaped tilde", "https://example.org/~ann/", "https://example.org/%7Eann/"),
    _urls(True, "escapes in lower case", "https://example.org/a%2Fb", "https://example.org/a%2fb"),
    _urls(True, "an escaped comma in the path", "https://example.org/a,b", "https://example.org/a%2Cb"),
    _urls(True, "host in upper case", _P, _P.replace("example.org", "EXAMPLE.ORG")),
    _urls(True, "default port", _P, _P.replace("example.org", "example.org:443")),
    _urls(True, "user information", _P, _P.replace("example.org", "ann:secret@example.org")),
    _urls(True, "AMP host", _P, _P.replace("example", "amp.example")),
    _urls(True, "AMP path", _P, _P + "/amp"),
    _urls(True, "AMP path with a slash", _P, _P + "/amp/"),
    _urls(True, "AMP parameter", _P, _P + "?amp=1"),
    _urls(True, "mobile host m.", _P, _P.replace("example", "m.example")),
    _urls(True, "mobile host mobile.", _P, _P.replace("example", "mobile.example")),
    _urls(
        True,
        "mobile host behind a language",
        "https://en.m.wikipedia.org/wiki/River",
        "https://en.wikipedia.org/wiki/River",
    ),
    _urls(True, "index file", "https://example.org/docs/", "https://example.org/docs/index.html"),
    _urls(True, "default.aspx", "https://example.org/docs", "https://example.org/docs/Default.aspx"),
    _urls(True, "a fragment is a place in the page", _P, _P + "#history"),
    _urls(True, "a text fragment", _P, _P + "#:~:text=the%20river"),
    _urls(True, "page=1 is the page itself", _P, _P + "?page=1"),
    _urls(True, "dots in the path", "https://example.org/a/../b", "https://example.org/b"),
    _urls(True, "IDNA and Unicode host", "https://bücher.example/liste", "https://xn--bcher-kva.example/liste"),
    _urls(
        True,
        "path in Cyrillic and in escapes",
        "https://example.org/река",
        "https://example.org/%D1%80%D0%B5%D0%BA%D0%B0",
    ),
    _urls(
        True,
        "plus and %20 in a query",
        "https://example.org/find?q=red+river",
        "https://example.org/find?q=red%20river",
    ),
    _urls(True, "HTML left in the address", _P + "?a=1&amp;b=2", _P + "?a=1&b=2"),
    _urls(True, "no scheme", _P, "example.org/news/river-levels"),
    _urls(True, "no scheme, with slashes", _P, "//example.org/news/river-levels"),
    _urls(
        True,
        "a route in the fragment, with a slash more",
        "https://app.example.org/#/item/5",
        "https://app.example.org/#/item/5/",
    ),
    _urls(True, "ampersands without parameters", _P + "?&a=1&", _P + "?a=1"),
    _urls(True, "white space around", _P, f"  {_P}\n"),
    Pair(True, "another snippet of one page", _page(snippet=EN), _page(snippet=OTHER)),
    Pair(True, "another title of one page", _page(title="River levels | Example"), _page()),
    Pair(True, "no type on one side", _page(), result(url=_P, title="Rivers")),
    Pair(True, "unknown type is generic", result(type="blog entry", url=_P), _page()),
    Pair(True, "type spelled otherwise", result(type="WebPage", url=_P), _page()),
    _urls(True, "a wiki's action=view", "https://w.example/wiki/River", "https://w.example/wiki/River?action=view"),
    _urls(True, "a short and a long question", f"{_SO}/q/11227809", f"{_SO}/questions/11227809/why-is-it-faster"),
    _urls(True, "a shared question", f"{_SO}/q/11227809/321", f"{_SO}/questions/11227809"),
    _urls(True, "an answer within its question", f"{_SO}/questions/17/why/23#23", "http://www.stackoverflow.com/q/17"),
    _urls(True, "an answer that a user shared", f"{_SO}/a/23/321", f"{_SO}/a/23"),
    _urls(
        True,
        "a question of Stack Exchange",
        "https://math.stackexchange.com/q/5",
        "https://math.stackexchange.com/questions/5/a-sum",
    ),
    # Documentation: a language or version folder, if the titles agree.
    _editions(True, "latest and none", f"{_DOCS}/en/latest/install.html", f"{_DOCS}/install.html"),
    _editions(True, "latest and stable", f"{_DOCS}/en/latest/install.html", f"{_DOCS}/en/stable/install.html"),
    _editions(True, "a language and none", f"{_DOCS}/en/install/", f"{_DOCS}/install"),
    _editions(True, "stable on any host", "https://river.example/stable/install", "https://river.example/install"),
    _editions(True, "a version and none", "https://river.example/v1.2/install", "https://river.example/install"),
    _editions(True, "below /docs", "https://river.example/docs/1.4/install", "https://river.example/docs/install"),
    _editions(True, "start pages", f"{_DOCS}/en/latest/", f"{_DOCS}/"),
    # Addresses of different pages.
    _editions(False, "an edition with another title", f"{_DOCS}/en/latest/a", f"{_DOCS}/a", "River", "Lake", text=EN),
    _editions(False, "editions without titles", f"{_DOCS}/en/latest/a", f"{_DOCS}/a", None, None, text=EN),
    _editions(False, "one edition without a title", f"{_DOCS}/en/latest/a", f"{_DOCS}/a", "River", None, text=EN),
    _editions(False, "two versions", f"{_DOCS}/v1.2/install", f"{_DOCS}/v2.0/install"),
    _editions(False, "two languages", f"{_DOCS}/en/install", f"{_DOCS}/de/install"),
    _editions(False, "another page of an edition", f"{_DOCS}/en/latest/a", f"{_DOCS}/b"),
    _editions(False, "another parameter of an edition", f"{_DOCS}/en/latest/a?x=1", f"{_DOCS}/a?x=2"),
    _editions(
        False, "/en/ of a site that is no documentation", "https://river.example/en/a", "https://river.example/a"
    ),
    _editions(False, "a folder that is no language", f"{_DOCS}/xy/install", f"{_DOCS}/install"),
    _urls(
        False, "another action", "https://w.example/wiki/River?action=view", "https://w.example/wiki/River?action=edit"
    ),
    _urls(False, "an answer, whose question is not known", f"{_SO}/a/23", f"{_SO}/questions/17/why"),
    _urls(False, "an answer and a question of one number", f"{_SO}/a/17", f"{_SO}/q/17"),
    _urls(False, "another question", f"{_SO}/q/17", f"{_SO}/q/18"),
    _urls(False, "/q/ of another site", "https://river.example/q/17", "https://river.example/questions/17/why"),
    _urls(False, "another id", "https://example.org/item?id=1", "https://example.org/item?id=2"),
    _urls(False, "another page of a list", "https://example.org/list?page=2", "https://example.org/list?page=3"),
    _urls(False, "page 2 and the first", "https://example.org/list?page=2", "https://example.org/list"),
    _urls(False, "page 2 and page 1", "https://example.org/list?page=2", "https://example.org/list?page=1"),
    _urls(False, "a post and the start page", "https://example.org/?p=123", "https://example.org/"),
    _urls(False, "another video", "https://video.example.org/watch?v=aaa", "https://video.example.org/watch?v=bbb"),
    _urls(False, "another article", "https://example.org/read?article=7", "https://example.org/read?article=8"),
    _urls(False, "another query", "https://example.org/find?q=river", "https://example.org/find?q=lake"),
    _urls(False, "another language", "https://example.org/a?lang=de", "https://example.org/a?lang=fr"),
    _urls(False, "another version", "https://example.org/docs?version=1", "https://example.org/docs?version=2"),
    _urls(False, "sid with a number is an article", "https://example.org/a?sid=123", "https://example.org/a?sid=124"),
    _urls(False, "another path", "https://example.org/a", "https://example.org/b"),
    _urls(False, "case of the path", "https://example.org/A", "https://example.org/a"),
    _urls(False, "%2F is no slash", "https://example.org/a%2Fb", "https://example.org/a/b"),
    _urls(False, "another host", "https://example.org/a", "https://example.net/a"),
    _urls(False, "another subdomain", "https://docs.example.org/a", "https://blog.example.org/a"),
    _urls(False, "another port", "https://example.org:8080/a", "https://example.org/a"),
    _urls(
        False, "another route in the fragment", "https://app.example.org/#/item/5", "https://app.example.org/#/item/6"
    ),
    _urls(False, "another hashbang route", "https://example.org/#!/a", "https://example.org/#!/b"),
    _urls(False, "homograph: Cyrillic a in the host", "https://example.org/a", "https://ex\u0430mple.org/a"),
    _urls(False, "m.com is a host, no view of com", "https://m.com/a", "https://com/a"),
    _urls(False, "javascript: names nothing", "javascript:void(0)", "javascript:void(0)"),
    _urls(False, "data: names nothing", "data:text/html,x", "data:text/html,x"),
    _urls(False, "about:blank names nothing", "about:blank", "about:blank"),
    _urls(False, "a bare # names nothing", "#", "#"),
    Pair(
        False,
        "same title on different hosts",
        _page("https://a.example/1", "Home of the archive", None),
        _page("https://b.example/1", "Home of the archive", None),
    ),
    Pair(False, "a copy on another host (standard)", _page("https://a.example/1"), _page("https://b.example/1")),
    Pair(
        False,
        "other id, same title and text",
        _page("https://example.org/item?id=1"),
        _page("https://example.org/item?id=2"),
    ),
    Pair(
        False,
        "consent banners of two pages",
        _page("https://example.org/a", "A", CONSENT),
        _page("https://example.org/b", "B", CONSENT),
    ),
    Pair(
        False,
        "consent banners without address, other titles",
        _page("", "Rivers", CONSENT),
        _page("", "Lakes", CONSENT),
    ),
    Pair(
        False,
        "re-issued id, other pages",
        _page("https://example.org/a", doc_id="1"),
        _page("https://example.org/b", doc_id="1"),
    ),
    Pair(
        False,
        "a parameter that decides nothing, and nothing else agrees",
        _page(_P + "?ref=home", "A", EN),
        _page(_P, "B", OTHER),
    ),
    # Other parameters leave the decision to title and text.
    Pair(True, "other ref, same title and text", _page(_P + "?ref=home"), _page(_P + "?ref=list")),
    Pair(True, "id on one side only, same title and text", _page(_P + "?id=5"), _page(_P)),
    Pair(True, "title and snippet, one without address", _page(), _page("")),
    Pair(True, "a snippet that was cut, with dots", _page("", snippet=EN), _page("", snippet=EN[:62] + " …")),
    Pair(False, "dots are in every text", _page("", snippet=EN), _page("", snippet="." * 60)),
    Pair(True, "title and a snippet inside the other", _page("", snippet=EN), _page("", snippet=EN[10:90])),
    Pair(
        True,
        "title, snippet with other markup",
        _page("", snippet="<b>The river</b> " + EN),
        _page("", snippet="**The river** " + EN),
    ),
    Pair(True, "title in other case, two blanks", _page("", "River  LEVELS", EN), _page("")),
    Pair(
        True,
        "title, author and date, no snippet in common",
        _page("", snippet=None, author="Ann Lee", published="2024-05-01"),
        _page("", snippet=None, author="ann lee", published="2024-05-01T00:00:00Z"),
    ),
    Pair(True, "entities and full-width letters", _page("", "R&amp;D ａｂ", EN), _page("", "r&d ab", EN)),
    Pair(
        False, "title alone", _page("", "Annual report 2023", None), _page("", "Annual report 2023", None, doc_id="x")
    ),
    Pair(False, "title, other snippet", _page("", snippet=EN), _page("", snippet=OTHER)),
    Pair(False, "snippet alone, under 200", _page("", None, EN), _page("", None, EN, doc_id="7")),
    Pair(
        False,
        "title and a short equal snippet: half weight",
        _page("", snippet="Short text"),
        _page("", snippet="Short text", doc_id="9"),
    ),
    Pair(False, "title and author", _page("", snippet=None, author="Ann"), _page("", snippet=EN, author="Ann")),
    # Full text with neither id nor address.
    Pair(True, "full text alone", result(snippet=LONG), result(snippet=LONG.upper())),
    Pair(True, "full text, one with a title", result(snippet=LONG), result(snippet=LONG, title="On rivers")),
    Pair(
        True,
        "full text with a title, a few words edited",
        result(title="On the rivers", snippet=LONG),
        result(title="On the rivers", snippet=LONG.replace("quiet", "silent")),
    ),
    Pair(
        False,
        "full text, other titles",
        result(snippet=LONG, title="On rivers"),
        result(snippet=LONG, title="On lakes"),
    ),
    Pair(
        False,
        "texts of one beginning",
        result(title="Chapter of the book", snippet=LONG[:100] + OTHER),
        result(title="Chapter of the book", snippet=LONG[:100] + DE),
    ),
    Pair(False, "nothing at all", result(), result()),
    Pair(False, "only blanks", result(title="  ", snippet="\n", url=" "), result(title="", snippet="", url="")),
    Pair(False, "bare short titles", result(title="Home"), result(title="Home")),
    Pair(
        False,
        "bare long titles",
        result(title="Frequently asked questions"),
        result(title="Frequently asked questions"),
    ),
    # Generic ids.
    Pair(True, "same id, nothing else", result(doc_id="d-17"), result(doc_id="d-17")),
    Pair(
        True,
        "same id, same title",
        result(doc_id="d-17", title="Rivers", snippet=EN),
        result(doc_id="d-17", title="rivers"),
    ),
    Pair(
        True,
        "same id, same snippet",
        result(doc_id="d-17", snippet=EN),
        result(doc_id="d-17", snippet=EN, title="Rivers"),
    ),
    Pair(True, "same id, one has only it", result(doc_id="d-17"), result(doc_id="d-17", title="Rivers", snippet=EN)),
    Pair(
        True,
        "a GUID in other case",
        result(doc_id="9F1C2E00-0000-4000-8000-00000000000A"),
        result(doc_id="9f1c2e00-0000-4000-8000-00000000000a"),
    ),
    Pair(False, "ids are case-sensitive", result(doc_id="Doc-A"), result(doc_id="doc-a")),
    Pair(
        False,
        "re-issued id, other title and text",
        result(doc_id="1", title="Rivers", snippet=EN),
        result(doc_id="1", title="Lakes", snippet=OTHER),
    ),
    Pair(False, "re-issued id, other text", result(doc_id="1", snippet=EN), result(doc_id="1", snippet=OTHER)),
    Pair(
        True,
        "other id, same title and text",
        result(doc_id="1", title="River levels", snippet=EN),
        result(doc_id="2", title="River levels", snippet=EN),
    ),
    # Other scripts.
    Pair(
        True,
        "Chinese, by text",
        result(title="河流水位报告与分析", snippet=ZH),
        result(title="河流水位报告与分析", snippet=ZH, doc_id="3"),
    ),
    Pair(
        True,
        "Chinese, one contains the other",
        result(title="河流水位报告与分析", snippet=ZH),
        result(title="河流水位报告与分析", snippet=ZH[3:40]),
    ),
    Pair(
        False,
        "Chinese, same title only",
        result(title="河流水位报告与分析", snippet=ZH),
        result(title="河流水位报告与分析", snippet=JA),
    ),
    Pair(
        True,
        "Japanese, full-width and half-width kana",
        result(title="カワノスイイホウコク", snippet=JA),
        result(title="ｶﾜﾉｽｲｲﾎｳｺｸ", snippet=JA),
    ),
    Pair(
        True,
        "Arabic",
        result(title="مستوى مياه النهر", snippet=AR),
        result(title="مستوى مياه النهر", snippet=AR, doc_id="8"),
    ),
    Pair(
        True,
        "Cyrillic in other case",
        result(title="УРОВЕНЬ РЕКИ", snippet=RU),
        result(title="Уровень реки", snippet=RU.upper()),
    ),
    Pair(
        True,
        "German, ß and SS",
        result(title="Straße am Fluss", snippet=DE),
        result(title="STRASSE AM FLUSS", snippet=DE),
    ),
    Pair(
        True,
        "French, composed and decomposed",
        result(title="Les rivières", snippet=FR),
        result(title="Les rivie\u0300res", snippet=FR),
    ),
    Pair(
        True,
        "Thai, part of the text",
        result(title="ระดับน้ำในแม่น้ำ", snippet=TH),
        result(title="ระดับน้ำในแม่น้ำ", snippet=TH[2:40]),
    ),
    Pair(
        True,
        "Korean",
        result(title="강 수위 보고서 요약", snippet=KO),
        result(title="강 수위 보고서 요약", snippet=KO, doc_id="5"),
    ),
    Pair(
        False,
        "Russian and Ukrainian text under one title",
        result(title="Новости сегодня", snippet=RU),
        result(title="Новости сегодня", snippet=RU.replace("е", "є").replace("и", "і")),
    ),
    Pair(
        True,
        "emoji and zero-width characters",
        result(title="River \U0001f30a news today", snippet=EN),
        result(title="Ri\u200bver \U0001f30a news today", snippet=EN),
    ),
    # Files.
    Pair(
        True,
        "file id, edited in between",
        result(type="file", ids={"file_id": "F1"}, title="Budget", snippet=EN),
        result(type="file", ids={"file_id": "F1"}, title="Budget (final)", snippet=OTHER),
    ),
    Pair(
        True,
        "file id under another spelling",
        result(type="file", ids={"fileId": "F1"}),
        result(type="file", ids={"FileId": "F1"}),
    ),
    Pair(
        True,
        "file and untyped, one file id",
        result(type="file", ids={"file_id": "F1"}),
        result(ids={"file_id": "F1"}, title="Budget"),
    ),
    Pair(
        True,
        "file id as GUID in other case",
        result(type="file", ids={"unique_id": "{0A1B2C3D-0000-4000-8000-0000000000FF}"}),
        result(type="file", ids={"unique_id": "0a1b2c3d-0000-4000-8000-0000000000ff"}),
    ),
    Pair(
        False,
        "other file id, the same text",
        result(type="file", ids={"file_id": "F1"}, title="Budget plan", snippet=LONG),
        result(type="file", ids={"file_id": "F2"}, title="Budget plan", snippet=LONG),
    ),
    Pair(
        False,
        "one id equal, another differs",
        result(type="file", ids={"file_id": "F1", "item_id": "I1"}),
        result(type="file", ids={"file_id": "F1", "item_id": "I2"}),
    ),
    Pair(
        False,
        "same site id is a container",
        result(type="file", ids={"site_id": "S"}, title="A", snippet=EN),
        result(type="file", ids={"site_id": "S"}, title="B", snippet=OTHER),
    ),
    Pair(
        False,
        "a copy in another format",
        result(type="file", title="Plan", file_name="plan.docx", snippet=EN),
        result(type="file", title="Plan", file_name="plan.pdf", snippet=EN),
    ),
    Pair(
        False,
        "other file type",
        result(type="file", title="Plan", file_type="pdf", snippet=LONG),
        result(type="file", title="Plan", file_type="docx", snippet=LONG),
    ),
    Pair(
        True,
        "type with and without the dot",
        result(type="file", title="Plan of the year", file_type=".PDF", snippet=EN),
        result(type="file", title="Plan of the year", file_type="pdf", snippet=EN),
    ),
    Pair(
        True,
        "name, title and time of change",
        result(type="file", title="Plan", file_name="plan.docx", modified_time="2024-05-01T10:00:00Z"),
        result(type="file", title="Plan", file_name="Plan.docx", modified_time="2024-05-01T12:00:00+02:00"),
    ),
    Pair(
        False,
        "name and title alone",
        result(type="file", title="Readme", file_name="readme.md", doc_id="1"),
        result(type="file", title="Readme", file_name="readme.md", doc_id="2"),
    ),
    Pair(
        True,
        "file and web page of one address",
        result(type="file", url="https://example.org/plan.pdf"),
        result(type="web_page", url="https://www.example.org/plan.pdf"),
    ),
    Pair(
        False,
        "file and email are incompatible",
        result(type="file", title="Plan of the year", snippet=LONG),
        result(type="email", title="Plan of the year", snippet=LONG),
    ),
    Pair(
        True,
        "file, title and snippet",
        result(type="file", title="Plan of the year", snippet=EN),
        result(type="file", title="Plan of the year", snippet=EN[:80], author="Ann"),
    ),
]
