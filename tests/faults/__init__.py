"""Real servers that fail, in every way they do, and what becomes of requests meanwhile."""
