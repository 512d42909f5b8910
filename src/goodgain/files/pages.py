"""Renders HTML pages that work offline, send nothing, and show malicious texts as texts: a report, and the page for judges."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from goodgain.errors import escape_controls

#: The frame of all pages, their look, and functions that their scripts share.
_SHARED = Path(__file__).parent / "page"
_WEB_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_LONGEST_ADDRESS = 1_600
#: Characters that could end the script element, and their escapes in JSON.
_IN_SCRIPT = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})


def render_page(folder: Path, name: str, *, data: Any, **values: Any) -> str:
    """Return the HTML of the template `NAME.html` in `folder`, with `NAME.css`, `NAME.js`, and `data` as JSON for the script.

    Browsers run only the script and the style whose hashes are in the page, and load nothing. `values` are escaped, unless they
    are of the type `Markup`.
    """
    import jinja2
    from markupsafe import Markup  # comes with Jinja2

    environment = jinja2.Environment(
        autoescape=True,
        finalize=_show,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FileSystemLoader([folder, _SHARED]),
    )
    script = _read_shrunk(_SHARED / "page.js") + _read_shrunk(folder / f"{name}.js")
    style = _read_shrunk(_SHARED / "page.css") + _read_shrunk(folder / f"{name}.css")
    page: str = environment.get_template(f"{name}.html").render(
        **values,
        script=Markup(script),
        style=Markup(style),
        hashes={"script": _hash(script), "style": _hash(style)},
        data=Markup(_write_json(data)),
    )
    return page


def is_web_address(text: str) -> bool:
    """Return whether a page may link to `text`: an address of the web, without control characters.

    >>> is_web_address("https://example.org/a"), is_web_address("javascript:alert(1)")
    (True, False)
    """
    return bool(_WEB_ADDRESS.fullmatch(text)) and text.isprintable() and len(text) <= _LONGEST_ADDRESS


def _show(value: Any) -> Any:
    return escape_controls(value) if type(value) is str else value  # Markup is a subclass of str


def _read_shrunk(path: Path) -> str:
    return re.sub(r"(?m)^\s+", "", path.read_text(encoding="utf-8"))


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _write_json(data: Any) -> str:
    text = json.dumps(_escape(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_IN_SCRIPT)


def _escape(value: Any) -> Any:
    if isinstance(value, str):
        return escape_controls(value)
    if isinstance(value, (list, tuple)):
        return [_escape(part) for part in value]
    if isinstance(value, dict):
        return {name: _escape(part) for name, part in value.items()}
    return value
