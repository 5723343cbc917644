"""Public arithmetic on measurements."""
