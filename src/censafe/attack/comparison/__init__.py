"""CONFIDENTIAL. Defenses applied to the same records, what each publishes, the error of that, and what an attacker still finds."""
