"""Why is this pod where it is, or nowhere: one report object, several renderings."""
