"""Reads the key of an endpoint from the environment, and hides keys and headers in messages."""

import base64
import html
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from goodgain.errors import InputError
from goodgain.options import spell

KEY_VARIABLE = "OPENAI_API_KEY"
#: Shorter values are not hidden: hiding short values would garble every text.
_SHORTEST_SECRET = 4
#: Shorter values are not hidden in Base64, for the same reason.
_SHORTEST_IN_BASE64 = 8
#: What a header can carry without change: printable ASCII without blanks.
_SENDABLE = re.compile("[!-~]+")
#: What may separate two characters of a key: blanks of wrapped text, and backslashes of the key, repr or JSON.
_GAP = r"(?:[\s\\]|(?i:%5c|u005c|x5c|&\#x5c;|&\#92;))*+"

#: The signs of Base64 in URLs.
_URL_SAFE = str.maketrans("+/", "-_")


class Key:
    """The API key from an environment variable, and the user's HTTP headers. Errors never show the key or the value of a header.

    `value` is empty if the variable is not set: some endpoints need no key.
    """

    def __init__(self, variable: str = KEY_VARIABLE, headers: Mapping[str, str] | None = None) -> None:
        """Read the key from the environment; without the variable, it is an empty text. Values of headers are secrets too."""
        if not variable:
            option = spell("key_variable", variable)
            raise InputError(f"{option}: give the name of the environment variable that holds the key")
        self.variable = variable
        self.value = os.environ.get(variable, "")
        if self.value and not _SENDABLE.fullmatch(self.value):
            raise InputError(
                f"{variable}: the key has a blank, a line end or a character that is not printable ASCII. "
                "Set the variable to the key alone: lines of a .env file saved on Windows end with an invisible \\r"
            )

        if not isinstance(headers, Mapping | None):
            raise InputError(f"{spell('headers')} is a {type(headers).__name__}; give a dict: {{name: value}}")
        self.headers = {str(name): str(value) for name, value in (headers or {}).items()}
        for name, value in self.headers.items():
            if not (_SENDABLE.fullmatch(name) and _SENDABLE.fullmatch(value.replace(" ", ""))):
                raise InputError(
                    f"{spell('headers', name)}: the header is not printable ASCII. Correct the header's name or value"
                )

        secrets = [self.value]
        for value in self.headers.values():
            secrets += [value, *value.split()[-1:]]  # Bearer KEY
        self.hide = make_hider(secrets)


def make_hider(secrets: Iterable[str]) -> Callable[[str], str]:
    """Return a function that replaces secrets in a text by `***`, even if they are escaped or broken across lines.

    Hide secrets before you cut a text, because the function does not find parts of a secret.

    >>> make_hider(["sk-a/b"])(r'{"Authorization": "Bearer sk-a\\/b"}')
    '{"Authorization": "Bearer ***"}'
    """
    written: list[str] = []  # patterns: unchanged, as in repr, JSON, URLs, HTML and wrapped text, and in Base64
    for secret in secrets:
        if len(secret) < _SHORTEST_SECRET:
            continue
        # No part of the pattern backtracks: the text comes from the endpoint.
        characters = (_match_character(character) for character in secret if character != "\\")
        written += filter(None, (re.escape(secret), _GAP.join(characters)))
        written += map(_match_base64, _encode_base64(secret))
    hidden = "|".join(written)
    return lambda text: re.sub(hidden, "***", text) if hidden else text


def _encode_base64(secret: str) -> Iterator[str]:
    """Yield the signs of Base64 that depend on the secret alone, for each place of the secret among the text before it."""
    if len(secret) < _SHORTEST_IN_BASE64:
        return
    content = secret.encode()
    # Base64 writes three bytes as four signs. `earlier_bytes` is how many bytes of the secret's first group precede the secret.
    for earlier_bytes in range(3):
        full_groups = (earlier_bytes + len(content)) // 3  # a group begun at the end also depends on the text after
        own_bytes = 3 * full_groups - earlier_bytes
        encoded = base64.b64encode(bytes(earlier_bytes) + content[:own_bytes]).decode()

        shared_signs = 0  # signs that also depend on the text before
        if earlier_bytes:
            shared_signs = earlier_bytes + 1
        own_signs = encoded[shared_signs:]
        yield own_signs
        yield own_signs.translate(_URL_SAFE)


def _match_base64(encoded: str) -> str:
    return _GAP.join(_match_character(sign) if sign in "+/" else re.escape(sign) for sign in encoded)


def _match_character(character: str) -> str:
    code = f"{ord(character):02x}"
    escaped = "|".join(map(re.escape, (f"%{code}", f"u00{code}", f"x{code}", f"&#x{code};", f"&#{ord(character)};")))
    return f"(?>(?i:{escaped})|{re.escape(html.escape(character))}|{re.escape(character)})"
