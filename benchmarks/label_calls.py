"""How fast `label` sends calls, beside the bare `openai` client with as many threads, against a server on the loopback.

    python benchmarks/label_calls.py [--calls 2000] [--jobs 8] [--times 5]

Both send the same bodies, in turns, in one process; the server has a process of its own and answers at once. Quote the ratio.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openai
import polars as pl

import goodgain as gg
from goodgain.judgments.labelling.documents_to_label import collect_documents
from goodgain.judgments.labelling.prompt_requests import Parameters, make_requests, read_prompt

SERVER = """
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = {"role": "assistant", "content": '{"reason": "it has the date", "grade": 3}'}
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
        body["usage"] = {"prompt_tokens": 500, "completion_tokens": 20, "total_tokens": 520}
        body["choices"] = [{"index": 0, "message": answer, "finish_reason": "stop"}]
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def main() -> None:
    """Print the calls a second of both, and the ratio of their medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("calls", 2_000), ("jobs", 8), ("times", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    texts = {f"d{k}": f"text {k} " + "of a document that has some length " * 40 for k in range(asked.calls)}
    run = {"q": dict.fromkeys(texts, 1.0)}
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
            seconds: dict[str, list[float]] = {"bare client": [], "label": []}
            for _ in range(asked.times):
                seconds["bare client"].append(time_bare(run, texts, url, asked.jobs))
                seconds["label"].append(time_label(run, texts, url, asked.jobs))
        finally:
            server.kill()
    medians = {name: statistics.median(of) for name, of in seconds.items()}
    for name, median in medians.items():
        print(f"{name}: {asked.calls / median:,.0f} calls a second")
    print(f"speed of label / speed of the bare client: {medians['bare client'] / medians['label']:.2f}")


def time_bare(run: dict[str, dict[str, float]], texts: dict[str, str], url: str, jobs: int) -> float:
    """Return the seconds of the calls by the client alone; the bodies are ready."""
    wanted, _ = collect_documents(run, {"q": "who"}, texts=texts)
    bodies = [request.body for request in make_requests(wanted, read_prompt(), Parameters("m")) if request]
    began = time.perf_counter()
    with openai.OpenAI(base_url=url, api_key="none") as client, ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(lambda body: client.chat.completions.create(**body), bodies))
    assert len(found) == len(texts)
    return time.perf_counter() - began


def time_label(run: dict[str, dict[str, float]], texts: dict[str, str], url: str, jobs: int) -> float:
    """Return the seconds of `label`, with its journal on disk."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        grades = gg.label(
            run, {"q": "who"}, texts=texts, model="m", base_url=url, jobs=jobs, journal=Path(folder) / "journal"
        )
        seconds = time.perf_counter() - began
    assert grades.filter(pl.col("grade") == 3).height == len(texts)
    return seconds


if __name__ == "__main__":
    main()
