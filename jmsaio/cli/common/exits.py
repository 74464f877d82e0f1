"""The exit codes of the command."""

OK = 0
ERROR = 1
USAGE = 2
NOTHING = 3
#: Stored messages that were wanted are gone.
DATA_LOSS = 4
#: Something was left out.
PARTLY = 5
INTERRUPTED = 130
#: The output pipe is closed: 128 and the signal's number, as a shell shows it for other commands.
BROKEN_PIPE = 141
