"""Keys of the noise, commitments to files, and random words from the operating system."""
