"""The exit codes of the command."""

OK = 0
ERROR = 1
USAGE = 2
NOTHING = 3
INTERRUPTED = 130
