"""The programs of the services guide, in processes of their own: SIGTERM ends them after the work in progress."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from jmsaio.launcher.broker import free_ports
from tests.support.documents import ROOT, all_blocks

pytestmark = pytest.mark.real_time

#: A handler that writes when it begins and ends.
SLOW = """

async def handle(message: jmsaio.Message) -> None:
    print("began", flush=True)
    await asyncio.sleep(2)
    print("ended", flush=True)
"""
#: Runs the worker and a client that sends jobs, in one process, as the embedded broker needs.
FEED = """

async def feed() -> None:
    async with jmsaio.connect() as connection, connection.create_session() as session:
        producer = await session.create_producer(session.create_queue("jobs"))
        for number in range(10):
            await producer.send(str(number))


async def both() -> None:
    await asyncio.gather(main(), feed())


asyncio.run(both())
"""


def program(name: str) -> str:
    """A block of the guide that is to be saved as a file of this name, without what continues it."""
    text = (ROOT / "jmsaio" / "guide" / "services.md").read_text(encoding="utf-8")
    begin = text.index(f"`{name}`")
    line = text[: text.index("```python", begin)].count("\n") + 2
    [block] = [each for each in all_blocks("python") if each.path.name == "services.md" and each.line == line]
    return block.text


@contextlib.asynccontextmanager
async def running(
    folder: Path, *command: str, url: str = "memory://services"
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        cwd=folder,
        env=os.environ | {"JMSAIO_URL": url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def until_ready(url: str) -> None:
    async with asyncio.timeout(60), httpx.AsyncClient() as web:
        while True:
            with contextlib.suppress(httpx.TransportError):
                if (await web.get(url)).status_code == 200:
                    return
            await asyncio.sleep(0.05)


async def stopped(process: asyncio.subprocess.Process) -> list[str]:
    """Stop a process once its handlers are at work, and return what they wrote: two that began, and what follows."""
    assert process.stdout is not None
    words: list[str] = []
    async with asyncio.timeout(60):
        while line := (await process.stdout.readline()).decode():
            if line not in ("began\n", "ended\n"):  # uvicorn's log
                continue
            words.append(line.strip())
            if words == ["began", "began"]:
                process.send_signal(signal.SIGTERM)
    await process.wait()
    return words


async def test_the_application_ends_after_the_orders_in_progress(tmp_path: Path) -> None:
    (tmp_path / "service.py").write_text("import asyncio\n" + program("service.py") + SLOW)
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    command = ["-m", "uvicorn", "--factory", "service:create_app", "--port", str(port)]
    async with running(tmp_path, *command) as process:
        await until_ready(f"{url}/health/ready")
        async with httpx.AsyncClient() as web:
            for item in ("tea", "milk"):
                assert (await web.post(f"{url}/orders", json={"item": item})).status_code == 202
        assert await stopped(process) == ["began", "began", "ended", "ended"]


@pytest.mark.broker
async def test_the_alarm_of_the_production_guide_reports_the_dead_letters_of_the_application(
    tmp_path: Path, small_url: str
) -> None:
    [alarm] = [each.text for each in all_blocks("bash") if each.path.name == "production.md"]

    async def alarmed() -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", alarm, env=os.environ | {"JMSAIO_URL": small_url, "PATH": path}, stdout=asyncio.subprocess.PIPE
        )
        return (await process.communicate())[0].decode()

    fails = "\n\nasync def handle(message: jmsaio.Message) -> None:\n    raise ValueError\n"
    (tmp_path / "service.py").write_text(program("service.py") + fails)
    [port] = free_ports(1)
    command = ["-m", "uvicorn", "--factory", "service:create_app", "--port", str(port)]
    async with running(tmp_path, *command, url=small_url):
        await until_ready(f"http://127.0.0.1:{port}/health/ready")
        assert await alarmed() == ""
        async with httpx.AsyncClient() as web:
            assert (await web.post(f"http://127.0.0.1:{port}/orders", json={"item": "tea"})).status_code == 202
        async with asyncio.timeout(90):
            while not (said := await alarmed()):
                await asyncio.sleep(0.5)
    assert said.startswith('ALARM {"name": "failed-orders-DLQ"')
    assert '"backlog": 1' in said


async def test_the_worker_ends_after_the_jobs_in_progress_and_begins_no_other(tmp_path: Path) -> None:
    [port] = free_ports(1)
    source = program("worker.py").replace("PORT = 4, 8001", f"PORT = 2, {port}")
    assert str(port) in source
    (tmp_path / "worker.py").write_text(source + SLOW + FEED)
    async with running(tmp_path, "worker.py") as process:
        await until_ready(f"http://127.0.0.1:{port}/ready")
        assert await stopped(process) == ["began", "began", "ended", "ended"]
    assert process.returncode == 0
