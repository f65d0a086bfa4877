"""Scheduler extenders: HTTP servers that are asked to filter and score nodes, to choose victims, and to bind.

Questions and answers are data; who is asked when is the business of `cycle`.
"""
