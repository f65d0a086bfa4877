"""When will it start?"""
