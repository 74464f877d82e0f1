"""The running parts of connections and sessions: their tasks, the objects that they share, and their orderly end."""
