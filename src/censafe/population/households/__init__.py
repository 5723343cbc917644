"""CONFIDENTIAL. The input of PHSafe: persons, units and geography, read, checked and loaded into the engine."""
