"""An OpenAI-compatible endpoint on the loopback, which answers as a script says and keeps what it was sent."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: In place of this model, the server answers as the model that it was asked for.
ASKED = "m"

__all__ = ["ASKED", "Call", "Script", "Server", "completion", "content_of", "good", "serve"]


@dataclass
class Call:
    """One request as the server saw it: body, headers, when it came, how often the same body came before, path."""

    body: dict[str, Any]
    headers: dict[str, str]
    at: float
    before: int
    path: str


#: What to answer to a call: the body of a chat completion, or a status with a body and headers, or "hang", "close", bytes, or
#: an iterator of bytes, which are sent one after the other. An iterator in place of all of it sends the status and headers too.
Script = Callable[[Call], Any]


def completion(content: Any, *, refusal: str | None = None, finish: str = "stop", usage: bool = True) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, "refusal": refusal}
    body: dict[str, Any] = {"id": "c", "object": "chat.completion", "created": 1, "model": ASKED}
    body["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
    if usage:
        body["usage"] = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return body


def good(grade: int | None = 3, reason: str = "because") -> dict[str, Any]:
    return completion(json.dumps({"grade": grade, "reason": reason}))


def content_of(call: Call) -> str:
    """What the user said: the query and the document."""
    return str(call.body["messages"][-1]["content"])


@dataclass
class Server:
    """A running server: its address, how to close its port before the end, and the calls that it got."""

    url: str
    close: Callable[[], None]
    calls: list[Call] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.calls)


@contextmanager
def serve(script: Script, port: int = 0) -> Iterator[Server]:
    """Run a server on a port of the loopback; 0: a free one."""
    lock, seen = threading.Lock(), Counter[str]()
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                call = Call(
                    json.loads(text),
                    {name.lower(): value for name, value in self.headers.items()},
                    time.monotonic(),
                    seen[text.decode()],
                    self.path,
                )
                seen[text.decode()] += 1
                server.calls.append(call)
            self._answer(call, script(call))

        def _answer(self, call: Call, found: Any) -> None:
            if found == "hang":
                ended.wait(20)
                self.close_connection = True
                return

            if found == "close":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                self.connection.close()
                self.close_connection = True
                return

            if isinstance(found, Iterator):
                self.close_connection = True
                with suppress(OSError):
                    for piece in found:
                        self.wfile.write(piece)
                return

            status, body, headers = found if isinstance(found, tuple) else (200, found, {})
            if isinstance(body, dict) and body.get("model") == ASKED:
                body |= {"model": call.body["model"]}
            pieces = body if isinstance(body, Iterator) else None
            content = b"" if pieces else body if isinstance(body, bytes) else json.dumps(body).encode()
            length = {"Connection": "close"} if pieces else {"Content-Length": str(len(content))}
            self.send_response(status)
            for name, value in ({"Content-Type": "application/json"} | length | headers).items():
                self.send_header(name, value)
            self.end_headers()

            try:
                for piece in pieces or [content]:
                    self.wfile.write(piece)
            except OSError:
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, *_: Any) -> None:
            pass

    def close() -> None:
        running.shutdown()
        running.server_close()

    running = Quiet(("127.0.0.1", port), Handler)
    server = Server(f"http://127.0.0.1:{running.server_port}/v1", close)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        ended.set()
        close()
