"""The versioned store in memory and the journal that makes it survive."""
