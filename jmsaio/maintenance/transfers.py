"""A redrive, move, copy or purge of all topics of a destination."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import anyio
import attrs

from jmsaio.config import Configuration
from jmsaio.errors import NotFoundError
from jmsaio.maintenance.copies import CopyCursors
from jmsaio.maintenance.dead_letters import require_admin
from jmsaio.maintenance.overview import count_messages
from jmsaio.maintenance.transfer import Transfer, TransferRange, TransferRequest, plan_transfer
from jmsaio.maintenance.transferring import MAX_ERRORS, TransferProgress, TransferResult, find_last, transfer_range
from jmsaio.model.topic_names import SUBSCRIPTION_PREFIX
from jmsaio.transport.administration import Admin
from jmsaio.transport.base import Transport
from jmsaio.transport.waiting import together


async def transfer_all(
    transport: Transport, configuration: Configuration, request: TransferRequest,
    progress: TransferProgress | None = None,
) -> list[TransferResult]:  # fmt: skip
    """Carry out a request for all topics and partitions, concurrently unless it has a limit.

    A copy that was interrupted, repeated with the same request, continues: what was recorded as copied is not copied
    again. A purge without selector and limit also removes messages that consumers hold.

    See ``plan_transfer`` and ``transfer_range``.
    """
    job = _Job(transport, configuration, request, require_admin(transport), progress or TransferProgress())
    ranges = await plan_transfer(transport, configuration, request)
    if request.transfer is Transfer.COPY:
        return await job.copy(ranges)
    if request.transfer is Transfer.PURGE and request.selector is None and request.limit is None:
        return await together(job.purge(part) for part in ranges)
    return await job.carry_out(ranges)


def describe(job: str, request: TransferRequest, results: Iterable[TransferResult], began: float) -> dict[str, Any]:
    """Combine the results of several topics for a summary in JSON.

    Args:
        job: the command.
        request: what it carried out.
        results: result of each topic.
        began: a time of ``time.monotonic``.

    Returns:
        ``sent``, ``not_selected``: numbers; ``targets``: number sent, or to be sent, by topic; ``left``: number by
        reason; ``unseen``: topics where other consumers hold messages; ``errors``: a few sentences.
    """
    results = list(results)
    targets: Counter[str] = sum((Counter(each.sent) for each in results), Counter())
    left: Counter[str] = sum((Counter(each.left) for each in results), Counter())
    errors = dict.fromkeys(text for each in results for text in each.errors)
    return {
        "job": job,
        "dry_run": request.dry_run,
        "destination": str(request.destination),
        "sent": targets.total(),
        "not_selected": sum(each.not_selected for each in results),
        "targets": dict(sorted(targets.items())),
        "left": dict(left),
        "unseen": [each.topic for each in results if not each.complete],
        "errors": list(errors)[:MAX_ERRORS],
        "seconds": round(time.monotonic() - began, 3),
    }


@attrs.frozen
class _Job:
    """A request at work."""

    transport: Transport
    configuration: Configuration
    request: TransferRequest
    admin: Admin
    progress: TransferProgress

    async def carry_out(self, ranges: Sequence[TransferRange]) -> list[TransferResult]:
        """Transfer all ranges."""
        self.progress.total = await self._backlog(ranges)
        if self.request.limit is None:
            return await together(self._transfer(part, self.request) for part in ranges)
        found: list[TransferResult] = []
        left = self.request.limit
        for part in ranges:
            found.append(await self._transfer(part, attrs.evolve(self.request, limit=left)))
            left -= sum(found[-1].sent.values())
            if left <= 0:
                break
        return found

    async def _transfer(self, part: TransferRange, request: TransferRequest) -> TransferResult:
        return await transfer_range(self.transport, self.configuration, request, part, self.progress)

    async def _backlog(self, ranges: Iterable[TransferRange]) -> int | None:
        """Return the number of messages on the subscriptions; None if one does not exist yet."""
        try:
            return sum([await self.admin.backlog(part.topic, part.subscription) for part in ranges])
        except NotFoundError:
            return None

    async def copy(self, ranges: Sequence[TransferRange]) -> list[TransferResult]:
        """Begin or continue a copy of the ranges of the queue's subscription, from which nothing is received."""
        cursors = await CopyCursors.of(self.transport, self.configuration, self.request)
        rest = await cursors.find()
        if rest is None and self.request.dry_run:
            cursors = attrs.evolve(cursors, name=f"{SUBSCRIPTION_PREFIX}{uuid.uuid4()}")
            try:
                return await self.carry_out(await cursors.create(ranges))
            finally:
                with anyio.CancelScope(shield=True):
                    await cursors.delete()
        if rest is None:
            rest = await self._shorten(await cursors.create(ranges))
            await cursors.plan(rest)
        results = await self.carry_out(rest)
        if not self.request.dry_run and all(one.complete and not one.left and not one.errors for one in results):
            await cursors.delete()
        return results

    async def _shorten(self, ranges: list[TransferRange]) -> list[TransferRange]:
        """Return the ranges up to the last message within the limit: a continued copy ends at the same message."""
        if (limit := self.request.limit) is None:
            return ranges
        found: list[TransferRange] = []
        for part in ranges:
            request = attrs.evolve(self.request, limit=limit)
            count, last = await find_last(self.transport, self.configuration, request, part)
            limit -= count
            if not limit and last is not None:
                return [*found, attrs.evolve(part, end=last)]
            found.append(part)
        return found

    async def purge(self, part: TransferRange) -> TransferResult:
        """Acknowledge everything up to the end of a range in one step, including what consumers hold."""
        count = await self._waiting(part)
        if not self.request.dry_run:
            await self.admin.advance(part.topic, part.subscription, part.end)
            count = max(0, count - await self._waiting(part))
        self.progress.seen += count
        self.progress.sent += count
        self.progress.changed(self.progress)
        return TransferResult(topic=part.topic, sent={part.topic: count} if count else {}, complete=True)

    async def _waiting(self, part: TransferRange) -> int:
        """Return the number of unacknowledged messages; beyond the broker's limit for counting them, of entries."""
        found = (await self.admin.stats(part.topic)).subscriptions[part.subscription]
        return (await count_messages(self.admin, part.topic, found)).backlog
