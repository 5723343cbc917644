"""Noisy measurements on disk, ours and the Bureau's public files: written once, sealed, verified whenever read."""
