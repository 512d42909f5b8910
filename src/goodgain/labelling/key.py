"""The key of an endpoint: where it comes from, and how it is kept out of everything that is written or printed."""

from __future__ import annotations

import html
import os
import re

from goodgain.errors import InputError
from goodgain.labelling.options import check_name

__all__ = ["KEY_VARIABLE", "Key"]

#: Where the key is, unless another variable is named.
KEY_VARIABLE = "OPENAI_API_KEY"

#: What a header can carry without change: printable ASCII without blanks.
_SENDABLE = re.compile("[!-~]+")
#: What may stand between two signs of a key: the blanks of wrapped text, and backslashes, of the key or of repr and JSON.
_GAP = r"(?:[\s\\]|(?i:%5c|u005c|x5c|&\#x5c;|&\#92;))*+"


class Key:
    """The key in an environment variable. Endpoints without keys need none.

    Args:
        variable: the name of the environment variable.

    Attributes:
        variable: the same.
        value: the key; empty if there is none.

    Raises:
        InputError: the key cannot be sent as it is. The error does not show it.
    """

    def __init__(self, variable: str = KEY_VARIABLE) -> None:
        check_name("key_variable", variable, "give the name of the environment variable that holds the key")
        self.variable = variable
        self.value = os.environ.get(variable, "")
        if self.value and not _SENDABLE.fullmatch(self.value):
            raise InputError(
                f"{variable}: the key has a blank, a line end or a character that is not printable ASCII. "
                "Set the variable to the key alone; lines of a .env file saved on Windows end with an invisible \\r"
            )
        self._pattern = _match_forms(self.value)

    def hide(self, text: str) -> str:
        """Return a text with `***` in place of the key, however it is escaped or wrapped. Cut texts only afterwards.

        >>> os.environ["DEMO_KEY"] = "sk-a/b"
        >>> Key("DEMO_KEY").hide(r'{"Authorization": "Bearer sk-a\\/b"}')
        '{"Authorization": "Bearer ***"}'
        >>> del os.environ["DEMO_KEY"]
        """
        return self._pattern.sub("***", text) if self.value else text


def _match_forms(key: str) -> re.Pattern[str]:
    """Return a pattern of the key as it is, and as repr, JSON, URLs, HTML and wrapped text write it.

    No part of it goes back: the text comes from the endpoint.
    """
    written = _GAP.join(_match_sign(sign) for sign in key if sign != "\\")
    return re.compile("|".join(filter(None, (re.escape(key), written))))


def _match_sign(sign: str) -> str:
    code = f"{ord(sign):02x}"
    escaped = "|".join(map(re.escape, (f"%{code}", f"u00{code}", f"x{code}", f"&#x{code};", f"&#{ord(sign)};")))
    return f"(?>(?i:{escaped})|{re.escape(html.escape(sign))}|{re.escape(sign)})"
