"""The tests: one contract suite for all stores, then acceptance, properties, faults, browser and demo."""
