"""What users are promised, shown through requests to apps of their own making."""
