from censafe.geography import PUERTO_RICO, state_codes, states


def test_there_are_fifty_states_the_district_and_puerto_rico() -> None:
    assert len(state_codes()) == 52
    assert set(state_codes()) == {
        f"{code:02d}" for code in range(1, 57) if code not in (3, 7, 14, 43, 52)
    } | {PUERTO_RICO}


def test_codes_postal_abbreviations_and_names_are_unique_and_in_order() -> None:
    assert list(state_codes()) == sorted(state_codes())
    assert len({state.postal for state in states()}) == len({state.name for state in states()}) == 52
