"""The confidential side of a TopDown run, and the published results that it holds to."""
