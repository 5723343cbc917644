"""One synthetic population as block histograms and as fixed-width files, counted without the readers of the latter."""

from pathlib import Path

import duckdb

from censafe.population.synthetic.population import synthesize

KIND_OF_QUARTERS = {0: 0, 1: 1, 2: 3, 3: 5, 4: 6, 5: 7}


def write_histograms(folder: Path, *, persons: int, states: tuple[str, ...], seed: int) -> Path:
    """A data folder of the redistricting layout, counted from the PHSafe tables of the same people.

    The kind of quarters of a facility is not in those tables; it is taken from the drawn units.
    """
    import numpy as np
    import pyarrow as pa

    from censafe.population.synthetic.plan import make_plan
    from censafe.population.synthetic.population import draw_people

    tables = folder.with_name(folder.name + "-tables")
    synthesize(tables, persons=persons, states=states, seed=seed)
    units = draw_people(make_plan(persons, states, seed))[1]
    kinds = pa.table(
        {"MAFID": units.mafid, "kind": np.array([KIND_OF_QUARTERS[k] for k in units.quarters.tolist()])}
    )
    folder.mkdir(parents=True)
    con = duckdb.connect()
    con.register("kinds", kinds)
    con.execute(
        f"""
        CREATE TABLE u AS SELECT u.MAFID, u.FINAL_POP, k.kind,
            TABBLKST || TABBLKCOU || TABTRACTCE || TABBLKGRPCE || TABBLK AS geocode
        FROM '{tables}/units.parquet' u JOIN '{tables}/geo.parquet' g USING (MAFID) JOIN kinds k USING (MAFID);
        COPY (SELECT geocode, kind AS hhgq, (QAGE >= 18)::INT AS votingage, CENHISP::INT - 1 AS hispanic,
            CENRACE::INT - 1 AS cenrace, count(*) AS count
            FROM '{tables}/persons.parquet' JOIN u USING (MAFID) GROUP BY ALL)
        TO '{folder}/histogram.parquet' (FORMAT parquet);
        COPY (SELECT geocode, {", ".join(f"count(*) FILTER (kind = {kind}) AS gq{kind}" for kind in range(8))},
            count(*) FILTER (kind = 0 AND FINAL_POP > 0) AS occupied FROM u GROUP BY geocode)
        TO '{folder}/units.parquet' (FORMAT parquet)
        """
    )
    con.close()
    return folder
