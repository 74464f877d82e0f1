"""The storm: everything at once against a real broker behind a bad network. ``python -m tests.storm --minutes 10``."""
