"""What a client uses while it lives: a leak of any of these shows as a figure that grows."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Iterable
from pathlib import Path

import attrs
import httpx

_PAGE = os.sysconf("SC_PAGE_SIZE")


@attrs.frozen
class Sample:
    """The figures of one moment.

    Attributes:
        memory: of this process, in kB.
        objects: instances of the library's classes.
        tasks: of the event loop.
        sockets: open in this process.
        consumers: of the topics, as the broker counts them.
    """

    memory: int
    objects: int
    tasks: int
    sockets: int
    consumers: int

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in attrs.asdict(self).items())


async def sample(web_service_url: str, topics: Iterable[str]) -> Sample:
    """The figures now.

    Args:
        web_service_url: of a broker that runs.
        topics: names without tenant and namespace.
    """
    consumers = 0
    async with httpx.AsyncClient(base_url=web_service_url, timeout=30) as client:
        for topic in topics:
            answer = await client.get(f"/admin/v2/persistent/public/default/{topic}/stats")
            if answer.status_code == httpx.codes.OK:  # else no broker has it loaded
                consumers += sum(len(one["consumers"]) for one in answer.json()["subscriptions"].values())
    gc.collect()
    return Sample(
        memory=_memory(),
        objects=sum(str(type(thing).__module__).startswith("jmsaio.") for thing in gc.get_objects()),
        tasks=len(asyncio.all_tasks()),
        sockets=_sockets(),
        consumers=consumers,
    )


def _memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE // 1024


def _sockets() -> int:
    links = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    return sum(os.path.realpath(link).rpartition("/")[2].startswith("socket:") for link in links)
