"""The exit codes of the command."""

OK = 0
ERROR = 1
USAGE = 2
NOTHING = 3
#: Stored messages that should have been read are lost.
DATA_LOSS = 4
#: Something was left out.
PARTLY = 5
INTERRUPTED = 130
#: The output pipe is closed: 128 plus the signal's number, as shells report it.
BROKEN_PIPE = 141
