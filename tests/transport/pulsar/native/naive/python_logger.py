"""A Python logger given to pulsar-client: some properly closed programs abort at their end."""

import logging
import sys
import uuid

import pulsar

logging.basicConfig(level=logging.CRITICAL)
client = pulsar.Client(sys.argv[1], logger=logging.getLogger("naive"))
client.create_producer(f"naive-{uuid.uuid4()}").send(b"x")
client.close()
