"""After a fork the child blocks in any call."""

import os
import signal
import sys
import time
import uuid

import pulsar

client = pulsar.Client(sys.argv[1])
producer = client.create_producer(f"naive-{uuid.uuid4()}")
producer.send(b"parent")
child = os.fork()
if child == 0:
    producer.send(b"child")
    os._exit(0)
end = time.time() + 5
while time.time() < end:
    done, _ = os.waitpid(child, os.WNOHANG)
    if done:
        print("child ended", flush=True)
        break
    time.sleep(0.05)
else:
    print("child blocked", flush=True)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
client.close()
