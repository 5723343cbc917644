"""PUBLIC. Noisy measurement files of anyone: which files hold a level, its geounits and exact figures, and its answers."""
