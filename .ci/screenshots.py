"""``.ci/screenshots.py SITE FOLDER [PAGE...]``: looks at the built site in a browser, on a screen and on a telephone.

It needs Chromium or Chrome and ``pip install playwright``, which continuous integration installs for it alone. A
picture of each page, or of those that are named, is stored in the folder. The exit status is 1 if a page loads anything
from another host, has an error of a script, is wider than the window or shows a diagram as its source text, or if the
search finds nothing.
"""

from __future__ import annotations

import functools
import http.server
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Request, TimeoutError, ViewportSize, sync_playwright

BROWSERS = ("chromium", "google-chrome", "google-chrome-stable", "chrome")
WIDTHS: Mapping[int, Literal["light", "dark"]] = {1280: "light", 390: "dark"}
#: Maximum milliseconds to load a page, and to draw its diagrams.
PATIENCE = 60_000
DIAGRAMS = "document.querySelectorAll('pre.mermaid').length == 0"
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SEARCH_READY = "document.querySelector('.md-search-result__meta').innerText.startsWith('Type')"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site, silently."""

    def log_message(self, *arguments: object) -> None:
        """Write nothing."""


def faults(browser: Browser, host: str, page: str, width: int, picture: Path) -> Iterator[str]:
    """Take the picture of a page, and yield what is wrong with it."""
    size = ViewportSize(width=width, height=900)
    seen = browser.new_page(viewport=size, color_scheme=WIDTHS[width], reduced_motion="reduce")
    seen.set_default_timeout(PATIENCE)
    found: list[str] = []

    def loaded(request: Request) -> None:
        if not request.url.startswith((host, "data:")):
            found.append(f"loads {request.url}")

    seen.on("request", loaded)
    seen.on("pageerror", lambda error: found.append(f"error: {error}"))
    seen.goto(f"{host}/{page}")
    try:
        seen.wait_for_function(DIAGRAMS)
    except TimeoutError:
        found.append("a diagram is not drawn")
    if (wider := seen.evaluate(WIDER)) > 0:
        found.append(f"is {wider} pixels wider than the window")
    seen.screenshot(path=picture, full_page=True)
    if page == "contents.html":
        seen.keyboard.press("/")
        seen.wait_for_function(SEARCH_READY)
        seen.keyboard.type("redelivery")
        try:
            seen.wait_for_selector(".md-search-result__item", state="attached")
        except TimeoutError:
            found.append("the search finds nothing")
        seen.screenshot(path=picture.with_name(f"search-{width}.png"))
    seen.close()
    yield from found


def main(site: Path, folder: Path, chosen: set[str]) -> int:
    """Look at each page at each width, or only at those chosen; return the exit status."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        print(f"no browser is installed: one of {', '.join(BROWSERS)}", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if path.name != "404.html")
    pages = [page for page in pages if not chosen or page in chosen]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"http://127.0.0.1:{server.server_port}"
    wrong = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"], timeout=PATIENCE)
        for page in pages:
            name = page.removesuffix(".html").replace("/", "-")
            for width in WIDTHS:
                for fault in faults(browser, host, page, width, folder / f"{name}-{width}.png"):
                    wrong += 1
                    print(f"{page} at {width} pixels: {fault}")
        browser.close()
    server.shutdown()
    print(f"{len(pages)} pages, {wrong} faults")
    return 1 if wrong or not pages else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), set(sys.argv[3:])))
