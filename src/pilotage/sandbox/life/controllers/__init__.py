"""Small controllers that give the sandbox the life of a cluster: each brings what exists closer to what is wanted."""
