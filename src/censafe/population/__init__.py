"""CONFIDENTIAL. Record schemas, readers, validation and synthetic populations."""
