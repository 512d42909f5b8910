"""Writes annotations to a Phoenix server through the Python package `phoenix.client`."""

from collections.abc import Callable
from typing import Any

import polars as pl

from goodgain.errors import import_extra
from goodgain.hosts.annotation_table import NotWrittenError, explain_refusal, explain_silence

#: The environment variable of the key. The client reads the variables of the address.
KEYS = ("PHOENIX_API_KEY",)
ADDRESSES = ()
#: Annotations in one request.
_AT_ONCE = 100


def make_bodies(annotations: pl.DataFrame) -> list[dict[str, Any]]:
    """Convert annotations to request bodies. Phoenix overwrites an annotation that has the same target, name and identifier."""
    return [
        {
            **({"trace_id": trace} if span is None else {"span_id": span}),
            "name": name,
            "annotator_kind": "CODE",
            "result": {"score": score},
            "metadata": {"query_id": query},
            "identifier": "goodgain",
        }
        for query, trace, span, name, score in annotations.iter_rows()
    ]


def send(bodies: list[dict[str, Any]], *, base_url: str | None, key: str, hide: Callable[[str], str]) -> None:
    """Send annotations to Phoenix. `key` is empty for a server without keys. `hide` is a function that removes secrets."""
    package = import_extra("phoenix.client", "phoenix")
    errors = import_extra("httpx", "phoenix")
    written = 0
    address = base_url or "PHOENIX_COLLECTOR_ENDPOINT or http://localhost:6006"
    try:
        client = package.Client(base_url=base_url, api_key=key or None)
        methods = {"span": client.spans.log_span_annotations, "trace": client.traces.log_trace_annotations}
        for kind, method in methods.items():
            bodies_of_kind = [body for body in bodies if f"{kind}_id" in body]
            for start in range(0, len(bodies_of_kind), _AT_ONCE):
                block = bodies_of_kind[start : start + _AT_ONCE]
                method(**{f"{kind}_annotations": block}, sync=True)
                written += len(block)
    except errors.HTTPStatusError as error:
        answer, url = error.response, error.response.request.url
        server = f"{url.scheme}://{url.host}"
        if url.port:
            server += f":{url.port}"
        reason = explain_refusal(server, answer.status_code, answer.text, KEYS, hide)
    except ValueError:  # the client found no JSON
        reason = f"{address}: is not a server of Phoenix, or answers something else. Check --base-url"
    except (errors.HTTPError, errors.InvalidURL) as error:
        reason = explain_silence(address, hide(str(error)) or type(error).__name__)
    else:
        return
    raise NotWrittenError.of(reason, written, len(bodies), "The same command replaces them and goes on")
