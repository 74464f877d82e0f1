"""The embedded broker: Pulsar's behaviour in this process, without a server.

========================  =====================================================================================
``transport``             ``Transport``: one client; ``sender``, ``receiver``, ``reader``, ``admin``
``transaction``           atomic work
``link``                  connection to an event loop: grouped callbacks, one timer
``broker``                topics by name, memory, clients, scripted faults
``partition``             records of one topic or partition
``subscription``          unacknowledged records and their consumers; ``consumer``
``policies``              choice of the consumer for a record
========================  =====================================================================================

From ``partition`` down no module uses an event loop. Records live in memory and end with the process;
``non-persistent://`` topics are treated as persistent ones.
"""

from __future__ import annotations

from jmsaio.transport.memory.transport import MemoryTransport, open_transport

__all__ = ["MemoryTransport", "open_transport"]
