"""When will it start: the present played forward on copies, and ranges that are held against what is known."""
