"""What an operator types, and reads."""
