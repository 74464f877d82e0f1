"""What the tests need beside the code under test: the real broker, the real Java client."""
