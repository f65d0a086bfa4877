"""Configuration files: read with line numbers, decoded strictly, all problems reported at once.

Pure: text in, values or a list of problems out. What the names of plugins mean is the business of `framework`.
"""
