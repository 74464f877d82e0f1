from __future__ import annotations

import math
import time
import uuid

import anyio
import pytest

import jmsaio
from jmsaio.testing import Command, Direction, FaultProxy, Part
from tests.support.broker import TestBroker
from tests.testing.echo import HANG, PING, PONG, echoing, frame, until


async def test_without_a_fault_everything_passes() -> None:
    """Bytes pass both ways unchanged, are counted, and an end in order is passed on."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        data = bytes(range(256)) * 4096
        writer.write(b"\xff" + data)
        writer.write_eof()
        assert await reader.read(-1) == b"\xff" + data
        await until(lambda: echo.proxy.connections == 0)
        assert echo.ended == 1
        assert [echo.proxy.traffic(each).bytes for each in Direction] == [len(data) + 1] * 2


async def test_frames_are_counted_by_command() -> None:
    """A frame counts when it is complete, however it arrived."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        writer.write(PING + PONG[:5])
        assert await reader.readexactly(len(PING)) == PING
        writer.write(PONG[5:] + PING)
        assert await reader.readexactly(len(PONG + PING)) == PONG + PING
        frames = echo.proxy.traffic(Direction.TO_CLIENT).frames
        assert frames == {Command.PING: 2, Command.PONG: 1}


@pytest.mark.real_time  # measures a delay
async def test_latency_delays_bytes_until_it_is_switched_off() -> None:
    """Bytes arrive no earlier than the latency says, and at once when it is over."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        echo.proxy.latency(0.2, Direction.TO_BROKER)
        begin = time.monotonic()
        writer.write(PING)
        await reader.readexactly(len(PING))
        assert time.monotonic() - begin >= 0.19
        echo.proxy.latency(0)
        writer.write(PING)
        await reader.readexactly(len(PING))


async def test_slices_cut_the_bytes_but_lose_none() -> None:
    """Bytes arrive in pieces, all of them and in order."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        echo.proxy.slices(3, 0.02, Direction.TO_CLIENT)
        writer.write(PING)
        pieces: list[bytes] = []
        while sum(len(piece) for piece in pieces) < len(PING):
            pieces.append(await reader.read(100))
        assert b"".join(pieces) == PING
        assert len(pieces) > 1
        with pytest.raises(ValueError, match="at least 1"):
            echo.proxy.slices(0)
        for call in (echo.proxy.latency, lambda pause: echo.proxy.slices(3, pause)):
            with pytest.raises(ValueError, match="not nan"):
                call(math.nan)


async def test_a_stall_of_one_direction() -> None:
    """Nothing passes that way, the other way everything does; afterwards all comes, on the same connection."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        echo.proxy.stall(Direction.TO_CLIENT)
        writer.write(PING)
        await until(lambda: echo.got == PING)
        with pytest.raises(TimeoutError), anyio.fail_after(0.1):
            await reader.read(1)
        echo.proxy.resume()
        assert await reader.readexactly(len(PING)) == PING


@pytest.mark.real_time  # measures a delay
async def test_a_stall_that_ends_by_itself() -> None:
    """With ``seconds`` nobody has to resume; connections that are made meanwhile wait, too."""
    async with echoing() as echo:
        echo.proxy.stall(seconds=0.2)
        begin = time.monotonic()
        reader, writer = await echo.connect()
        writer.write(PING)
        assert await reader.readexactly(len(PING)) == PING
        assert time.monotonic() - begin >= 0.19


async def test_cut_in_the_middle_of_a_frame() -> None:
    """Frames before it pass, of the one that is hit a half, then the connection breaks."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        cut = echo.proxy.cut(Command.PONG, direction=Direction.TO_BROKER)
        writer.write(PING + PONG + PING)
        with pytest.raises(ConnectionResetError):
            while await reader.read(100):
                pass
        await until(lambda: echo.ended == 1)
        assert echo.got == PING + PONG[: len(PONG) // 2]
        assert cut.hits == 1


async def test_swallow_drops_one_frame_and_no_other() -> None:
    """The frame is gone, its neighbours are not."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        fault = echo.proxy.swallow(Command.PONG, direction=Direction.TO_CLIENT, skip=1)
        writer.write(PING + PONG + PONG + PONG + PING)
        wanted = PING + PONG + PONG + PING
        assert await reader.readexactly(len(wanted)) == wanted
        assert fault.hits == 1


async def test_flip_and_clear() -> None:
    """One byte of the frame is another until the faults are cleared."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        long = frame(Command.SEND, b"abcdef")
        echo.proxy.flip(Command.SEND, Part.COMMAND, direction=Direction.TO_BROKER, times=None)
        writer.write(long)
        changed = await reader.readexactly(len(long))
        assert sum(before != after for before, after in zip(long, changed, strict=True)) == 1
        echo.proxy.clear()
        writer.write(long)
        assert await reader.readexactly(len(long)) == long


async def test_an_outage_refuses_connections_until_it_ends() -> None:
    """Connections break, new ones are refused, and the port is the same afterwards."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        await until(lambda: echo.proxy.connections == 1)
        port = echo.proxy.port
        with echo.proxy.outage():
            with pytest.raises(ConnectionResetError):
                await reader.read(1)
            with pytest.raises(ConnectionRefusedError):
                await echo.connect()
        assert echo.proxy.port == port
        reader, writer = await echo.connect()
        writer.write(PING)
        assert await reader.readexactly(len(PING)) == PING


async def test_stopping_a_proxy_twice_changes_nothing() -> None:
    async with echoing() as echo:
        reader, writer = await echo.connect()
        writer.write(PING)
        assert await reader.readexactly(len(PING)) == PING
        for _ in range(2):
            echo.proxy.stop()
        with pytest.raises(ConnectionResetError):
            await reader.read(1)
        with pytest.raises(RuntimeError, match="once"):
            echo.proxy.start()


def test_what_can_not_be() -> None:
    """A proxy that does not run, one that was used, and a URL without a port are refused."""
    proxy = FaultProxy.of("pulsar://127.0.0.1:1")
    with pytest.raises(RuntimeError, match="use it in an"):
        proxy.reset()
    with proxy:
        assert proxy.url == f"pulsar://127.0.0.1:{proxy.port}"
        assert repr(proxy) == f"<FaultProxy {proxy.url} to 127.0.0.1:1, 0 connections>"
    with pytest.raises(RuntimeError, match="used once"):
        proxy.start()
    with pytest.raises(ValueError, match="one host and one port"):
        FaultProxy.of("pulsar://somewhere")


async def test_everything_of_a_real_broker_passes_here(pulsar_broker: TestBroker) -> None:
    """Look-ups, sends and deliveries go through the proxy, and a swallowed confirmation leaves the send in doubt."""
    async with FaultProxy.of(pulsar_broker.service_url) as proxy:
        async with (
            jmsaio.connect(
                f"{proxy.url}?producerConfig.sendTimeoutMs=2000", web_service_url=pulsar_broker.web_service_url
            ) as connection,
            connection.create_session() as session,
        ):
            queue = session.create_queue(f"proxy-{uuid.uuid4()}")
            producer = await session.create_producer(queue)
            await producer.send("1")
            async with session.create_consumer(queue) as consumer:
                message = await consumer.receive(HANG)
                assert message is not None
                assert message.get_body(str) == "1"
            assert proxy.traffic(Direction.TO_BROKER).frames[Command.SEND] == 1
            assert proxy.traffic(Direction.TO_CLIENT).frames[Command.MESSAGE] == 1
            lost = proxy.swallow(Command.SEND_RECEIPT)
            with pytest.raises(jmsaio.SendInDoubtError):
                await producer.send("2")
            assert lost.hits == 1
