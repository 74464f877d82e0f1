"""What runs behind connections and sessions: their tasks, what their children share, and their orderly end."""
