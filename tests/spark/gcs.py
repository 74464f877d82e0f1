"""A server with what archives call of GCS's XML API, as its reference describes it: no test server has all of it.

Each write gives an object a new generation; ``x-goog-if-generation-match`` lets a write fail if the object has another
one, or if it exists (0).
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import attrs


@attrs.frozen
class _Stored:
    data: bytes
    generation: int

    @property
    def tag(self) -> str:
        return f'"{hashlib.md5(self.data, usedforsecurity=False).hexdigest()}"'

    def listed(self, name: str) -> str:
        return (
            f"<Contents><Key>{escape(name)}</Key><LastModified>2026-11-27T09:00:00.000Z</LastModified>"
            f"<ETag>{self.tag}</ETag><Size>{len(self.data)}</Size></Contents>"
        )


class _Answers(BaseHTTPRequestHandler):
    """The answers of a server with one bucket, whatever its name."""

    protocol_version = "HTTP/1.1"
    objects: dict[str, _Stored]
    generations: Iterator[int]
    lock: Lock

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    @property
    def _name(self) -> str:
        return unquote(urlsplit(self.path).path).partition("/")[2].partition("/")[2]

    def do_GET(self) -> None:
        stored = self.objects.get(self._name)
        if not self._name:
            self._list(parse_qs(urlsplit(self.path).query).get("prefix", [""])[0])
        elif stored is None:
            self._answer(404)
        else:
            self._answer(200, stored.data, stored)

    def _list(self, prefix: str) -> None:
        found = "".join(each.listed(name) for name, each in sorted(self.objects.items()) if name.startswith(prefix))
        self._answer(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>".encode())

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"] or 0))
        source, required = self.headers["x-goog-copy-source"], self.headers["x-goog-if-generation-match"]
        with self.lock:
            now = self.objects.get(self._name)
            if required is not None and int(required) != (0 if now is None else now.generation):
                self._answer(412)
                return
            if source is not None:
                copied = self.objects.get(unquote(source).lstrip("/").partition("/")[2])
                if copied is None:
                    self._answer(404)
                    return
                data = copied.data
            self.objects[self._name] = made = _Stored(data, next(self.generations))
        self._answer(200, b"", made)

    def do_DELETE(self) -> None:
        self._answer(404 if self.objects.pop(self._name, None) is None else 204)

    def _answer(self, status: int, body: bytes = b"", stored: _Stored | None = None) -> None:
        self.send_response(status)
        headers = {"Content-Length": str(len(body)), "Last-Modified": "Fri, 27 Nov 2026 09:00:00 GMT"}
        if stored is not None:
            headers |= {"ETag": stored.tag, "x-goog-generation": str(stored.generation)}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def start_gcs(folder: Path) -> Iterator[dict[str, str]]:
    """Start a server, and stop it at the end; what a process needs in its environment to use it."""
    answers = type("Answers", (_Answers,), {"objects": {}, "generations": itertools.count(1), "lock": Lock()})
    with ThreadingHTTPServer(("127.0.0.1", 0), answers) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            key = {"client_email": "", "private_key": "", "private_key_id": "", "disable_oauth": True}
            account = folder / "account.json"
            account.write_text(json.dumps({**key, "gcs_base_url": f"http://127.0.0.1:{server.server_port}"}))
            yield {"GOOGLE_SERVICE_ACCOUNT": str(account)}
        finally:
            server.shutdown()
            thread.join()
