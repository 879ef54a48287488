"""Objects at URLs.

They are read in parallel ranges and ahead, with retries and checks, and written completely or not at all.
"""
