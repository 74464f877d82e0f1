"""The parts of ``UnackedTracker``: what becomes of the records that one receiver took and did not settle yet."""
