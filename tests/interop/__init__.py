"""The interop matrix: what one client sends and the other receives, Java and Python in each role, compared by a run."""
