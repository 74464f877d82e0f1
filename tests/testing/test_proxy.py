from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest

import jmsaio
from jmsaio.testing import Command, Direction, FaultProxy, Part
from tests.support.broker import TestBroker

#: Seconds after which a test hangs.
HANG = 30


@attrs.define
class Echo:
    """A tiny server that sends back what it gets, and the proxy before it."""

    proxy: FaultProxy
    got: bytearray = attrs.field(factory=bytearray)
    ended: int = 0
    writers: list[asyncio.StreamWriter] = attrs.field(factory=list)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection through the proxy, closed at the end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy.port)
        self.writers.append(writer)
        return reader, writer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                self.got += data
                writer.write(data)
        except ConnectionResetError:
            return
        finally:
            self.ended += 1
            writer.close()


@asynccontextmanager
async def echoing() -> AsyncIterator[Echo]:
    """An echo server behind a proxy."""
    echo = Echo(FaultProxy("127.0.0.1", 1))
    server = await asyncio.start_server(echo.serve, "127.0.0.1", 0)
    async with FaultProxy("127.0.0.1", server.sockets[0].getsockname()[1]) as echo.proxy:
        with anyio.fail_after(HANG):
            yield echo
        for writer in echo.writers:
            writer.transport.abort()
    server.close()


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(HANG):
        while not condition():
            await asyncio.sleep(0.01)


def frame(command: Command, body: bytes = b"") -> bytes:
    fields = bytes([8, command]) + body
    return (len(fields) + 4).to_bytes(4) + len(fields).to_bytes(4) + fields


PING, PONG = frame(Command.PING), frame(Command.PONG)


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


async def test_a_stall_that_ends_by_itself() -> None:
    """With ``seconds`` nobody has to resume; connections that are made meanwhile wait, too."""
    async with echoing() as echo:
        echo.proxy.stall(seconds=0.2)
        begin = time.monotonic()
        reader, writer = await echo.connect()
        writer.write(PING)
        assert await reader.readexactly(len(PING)) == PING
        assert time.monotonic() - begin >= 0.19


async def test_a_stalled_sender_is_held_up() -> None:
    """The proxy does not take without end what it can't pass on."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        echo.proxy.stall(Direction.TO_BROKER)
        writer.write(b"\xff" * 64 * 1024 * 1024)
        with pytest.raises(TimeoutError), anyio.fail_after(0.3):
            await writer.drain()
        assert echo.proxy.traffic(Direction.TO_BROKER).bytes == 0
        echo.proxy.resume()
        assert await reader.readexactly(1024) == b"\xff" * 1024


async def test_reset_breaks_both_sides_and_takes_new_connections() -> None:
    """Both sides get RST, and the proxy takes new connections."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        await until(lambda: echo.proxy.connections == 1)
        assert echo.proxy.reset() == 1
        with pytest.raises(ConnectionResetError):
            await reader.read(1)
        await until(lambda: echo.ended == 1)
        reader, writer = await echo.connect()
        writer.write(PING)
        assert await reader.readexactly(len(PING)) == PING


async def test_after_a_half_close_the_other_direction_goes_on() -> None:
    """The receiver of one direction hears the end; what it still says arrives."""
    async with echoing() as echo:
        reader, writer = await echo.connect()
        writer.write(PING)
        await reader.readexactly(len(PING))
        assert echo.proxy.half_close(Direction.TO_CLIENT) == 1
        assert await reader.read(1) == b""
        writer.write(PONG)
        await until(lambda: echo.got == PING + PONG)


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


async def test_a_server_that_is_away() -> None:
    """A client sees a broken connection, no more and no less."""
    async with echoing() as echo, FaultProxy("127.0.0.1", 1) as echo.proxy:
        with pytest.raises(ConnectionResetError), anyio.fail_after(HANG):
            reader, _ = await echo.connect()  # broken already, where this process is slow
            await reader.read(1)


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
