"""The verbs on objects: create, update, delete, bind, evict, scale."""
