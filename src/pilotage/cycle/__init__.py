"""One attempt from pop to bind: placement (pure), binding (async), failure; and the loop that runs it."""
