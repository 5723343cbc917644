"""CONFIDENTIAL. Attacks on records and schemas that are not the U.S. Census Bureau's, as a configuration with ``[read]`` describes them."""
