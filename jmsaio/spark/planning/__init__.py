"""Planning of reads: ranges of messages for tasks, and the check that all of them were read."""
