"""A server of the S3 interface that the test run starts itself, and buckets on it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

#: Credentials that the server accepts like any others; tests look for the second in what is written and printed.
KEY, SECRET = "AKIATESTTESTTEST", "wJalrXUtnFEMI-test-secret"


def variables(port: int) -> dict[str, str]:
    """What a process needs in its environment to use the server."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
    }  # fmt: skip


@contextmanager
def start_server(*ignored: str) -> Iterator[int]:
    """Start a server, and stop it at the end; its port.

    Args:
        ignored: headers that it ignores.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    paths = (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "tests.spark.store", str(port), *ignored]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as server:
        try:
            end = time.monotonic() + 60
            while not _answers(port):
                assert server.poll() is None and time.monotonic() < end, "the server does not start"
                time.sleep(0.1)
            yield port
        finally:
            server.kill()


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/moto-api/").is_success
    except httpx.TransportError:
        return False


def make_bucket() -> str:
    """A new bucket on the server of this process's environment; its URL."""
    name = f"b{uuid.uuid4().hex[:12]}"
    httpx.put(f"{os.environ['AWS_ENDPOINT_URL']}/{name}", timeout=30).raise_for_status()
    return f"s3a://{name}"


def serve(port: int, ignored: list[str]) -> None:
    """Serve until killed."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple

    serving = DomainDispatcherApplication(create_backend_app)

    def answer(environ: dict[str, Any], start: Any) -> Any:
        for name in ignored:
            environ.pop(f"HTTP_{name.upper().replace('-', '_')}", None)
        return serving(environ, start)

    run_simple("127.0.0.1", port, answer, threaded=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2:])
