"""The parts of ``UnackedTracker``, each with one task; they share the receiver's unsettled records."""
