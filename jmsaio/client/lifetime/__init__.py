"""Where and for how long objects live: their event loop, how they are opened, how long a call may take."""
