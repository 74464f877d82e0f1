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
from jmsaio.maintenance.dead_letters import LetterRange, RedriveRequest, Transfer, plan_redrive, require_admin
from jmsaio.maintenance.redrive import MAX_ERRORS, Progress, Redriven, find_last, redrive
from jmsaio.model.topic_names import SUBSCRIPTION_PREFIX
from jmsaio.transport.administration import Admin
from jmsaio.transport.base import Transport
from jmsaio.transport.waiting import together


async def redrive_all(
    transport: Transport, configuration: Configuration, request: RedriveRequest, progress: Progress | None = None
) -> list[Redriven]:  # fmt: skip
    """Carry out a request for all topics and partitions, concurrently unless it has a limit.

    A copy that was interrupted, repeated with the same request, continues: what was recorded as copied is not copied
    again. A purge without selector and limit also removes messages that consumers hold.

    See ``plan_redrive`` and ``redrive``.
    """
    ranges = await plan_redrive(transport, configuration, request)
    if request.transfer is Transfer.COPY:
        return await _copy(transport, configuration, request, ranges, progress)
    if request.transfer is Transfer.PURGE and request.selector is None and request.limit is None:
        admin, progress = require_admin(transport), progress or Progress(changed=lambda _: None)
        return await together(_purge(admin, letters, progress, request.dry_run) for letters in ranges)
    return await _carry_out(transport, configuration, request, ranges, progress)


def summarize(outcomes: Iterable[Redriven]) -> dict[str, Any]:
    """Combine the results of several topics for a summary in JSON.

    Args:
        outcomes: result of each topic.

    Returns:
        ``sent``, ``not_selected``: numbers; ``targets``: number sent, or to be sent, by topic; ``left``: number by
        reason; ``unseen``: topics where other consumers hold dead letters; ``errors``: a few sentences.
    """
    outcomes = list(outcomes)
    targets: Counter[str] = sum((Counter(each.sent) for each in outcomes), Counter())
    left: Counter[str] = sum((Counter(each.left) for each in outcomes), Counter())
    errors = dict.fromkeys(text for each in outcomes for text in each.errors)
    return {
        "sent": targets.total(),
        "not_selected": sum(each.not_selected for each in outcomes),
        "targets": dict(sorted(targets.items())),
        "left": dict(left),
        "unseen": [each.topic for each in outcomes if not each.complete],
        "errors": list(errors)[:MAX_ERRORS],
    }


def describe(job: str, request: RedriveRequest, outcomes: Iterable[Redriven], began: float) -> dict[str, Any]:
    """Return the summary of a command that carried out a request; ``began`` is a time of ``time.monotonic``."""
    return {
        "job": job,
        "dry_run": request.dry_run,
        "destination": str(request.destination),
        **summarize(outcomes),
        "seconds": round(time.monotonic() - began, 3),
    }


async def _carry_out(
    transport: Transport, configuration: Configuration, request: RedriveRequest, ranges: Sequence[LetterRange],
    progress: Progress | None,
) -> list[Redriven]:  # fmt: skip
    if progress is not None:
        progress.total = await _backlog(require_admin(transport), ranges)
    if request.limit is None:
        return await together(redrive(transport, configuration, request, letters, progress) for letters in ranges)
    found: list[Redriven] = []
    for letters in ranges:
        done = sum(sum(each.sent.values()) for each in found)
        if done >= request.limit:
            break
        rest = attrs.evolve(request, limit=request.limit - done)
        found.append(await redrive(transport, configuration, rest, letters, progress))
    return found


async def _backlog(admin: Admin, ranges: Iterable[LetterRange]) -> int | None:
    """Return the number of messages on the subscriptions; None if one does not exist yet."""
    try:
        return sum([await admin.backlog(letters.topic, letters.subscription) for letters in ranges])
    except NotFoundError:
        return None


async def _copy(
    transport: Transport, configuration: Configuration, request: RedriveRequest, ranges: Sequence[LetterRange],
    progress: Progress | None,
) -> list[Redriven]:  # fmt: skip
    """Begin or continue a copy. ``ranges`` are those of the queue's subscription, from which nothing is received."""
    cursors = await CopyCursors.of(transport, configuration, request)
    rest = await cursors.find()
    if rest is None and request.dry_run:
        cursors = attrs.evolve(cursors, name=f"{SUBSCRIPTION_PREFIX}{uuid.uuid4()}")
        try:
            created = await cursors.create(ranges)
            return await _carry_out(transport, configuration, request, created, progress)
        finally:
            with anyio.CancelScope(shield=True):
                await cursors.delete()
    if rest is None:
        rest = await cursors.create(ranges)
        if request.limit is not None:
            rest = await _shorten(transport, configuration, request, rest, request.limit)
        await cursors.plan(rest)
    outcomes = await _carry_out(transport, configuration, request, rest, progress)
    if not request.dry_run and all(one.complete and not one.left and not one.errors for one in outcomes):
        await cursors.delete()
    return outcomes


async def _shorten(
    transport: Transport, configuration: Configuration, request: RedriveRequest, ranges: Sequence[LetterRange],
    limit: int,
) -> list[LetterRange]:  # fmt: skip
    """Return the ranges up to the last message within the limit, so that a continued copy ends at the same message."""
    found: list[LetterRange] = []
    for letters in ranges:
        count, last = await find_last(transport, configuration, attrs.evolve(request, limit=limit), letters)
        limit -= count
        if not limit and last is not None:
            return [*found, attrs.evolve(letters, end=last)]
        found.append(letters)
    return found


async def _purge(admin: Admin, letters: LetterRange, progress: Progress, dry_run: bool) -> Redriven:
    """Acknowledge everything up to the end of a range in one step, including what consumers hold."""
    count = await _waiting(admin, letters)
    if not dry_run:
        await admin.advance(letters.topic, letters.subscription, letters.end)
        count = max(0, count - await _waiting(admin, letters))
    progress.seen += count
    progress.sent += count
    progress.changed(progress)
    return Redriven(
        topic=letters.topic, sent={letters.topic: count} if count else {}, not_selected=0, left={}, errors=(),
        complete=True,
    )  # fmt: skip


async def _waiting(admin: Admin, letters: LetterRange) -> int:
    """Return the number of unacknowledged messages; beyond the broker's limit for counting them, that of entries."""
    entries = (await admin.stats(letters.topic)).subscriptions[letters.subscription].backlog
    return max(entries, await admin.backlog(letters.topic, letters.subscription))
