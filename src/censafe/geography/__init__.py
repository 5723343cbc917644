"""Public geography: region identifiers, levels, state codes and the block file GRF-C.

Nothing here knows of persons or households; other packages may import it.
"""

from censafe.geography.regions import PUERTO_RICO, State, state_codes, states

__all__ = ["PUERTO_RICO", "State", "state_codes", "states"]
