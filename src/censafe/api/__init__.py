"""What people who work in Python call; the command line reads arguments and calls the same."""
