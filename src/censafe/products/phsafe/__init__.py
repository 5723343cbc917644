"""PHSafe: the noisy counts behind the 2020 S-DHC."""
