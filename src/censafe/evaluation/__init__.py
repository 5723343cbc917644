"""SEES BOTH SIDES, never on a release path. Accuracy and bias against the truth."""
