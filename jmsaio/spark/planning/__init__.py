"""Which messages are read, by whom, and whether all of them came."""
