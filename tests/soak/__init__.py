"""Programs that take minutes: kills by the dozen, power cuts, pods by the ten thousand (docs/contributing/soak.md)."""
