"""The parts of ``UnackedTracker``, each with one job; they share the receiver's unsettled records."""
