"""Speed, measured side by side with what people use today; never asserted in a test."""
