"""The laboratory: traces of clusters, replayed in virtual time with the real scheduler."""
