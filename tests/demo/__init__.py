"""The pub quiz, through real requests."""
