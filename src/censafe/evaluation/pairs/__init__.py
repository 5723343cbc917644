"""CONFIDENTIAL. Every measure on a true and a published file."""
