"""Tests of the stores and the rules they count by."""
