"""The console: what a scheduler has in mind, as pages for a browser. It reads and never changes anything."""
