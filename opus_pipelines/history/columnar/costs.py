"""What the tasks of a block cost: the rules of `costs`, for tasks without token counts, whole columns at a time."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from opus_pipelines.history.columnar.arrays import Bools, Floats, Ints, array, repeated, strings
from opus_pipelines.history.columnar.values import Coded
from opus_pipelines.history.costs import MS_PER_HOUR, PARTS, Rates

Money = tuple[Floats, Bools]


def prices(
    amounts: Mapping[str, Money], duration: Money, actors: Sequence[Coded], actor_kind: Coded, rates: Rates
) -> dict[str, pa.Array]:
    """`cost_usd`, its parts and `cost_basis` of every task. `amounts`: what the source states, by column; `actors`: names that a rate may
    go by, the person's, then roles and groups."""
    cost, stated = amounts["cost_usd"]
    parts = {name: amounts[name] for name in ("cost_compute_usd", "cost_model_usd", "cost_human_usd")}
    split = np.logical_or.reduce([known for _, known in parts.values()])
    total = np.zeros(len(cost))
    for value, known in parts.values():
        total = np.where(known, total + value, total)
    total = np.where(stated, cost, total)
    observed = stated | split
    rate, rated = _rates([*actors, actor_kind], rates)
    rated &= ~observed & duration[1]
    total = np.where(rated, duration[0] / MS_PER_HOUR * rate, total)
    known = observed | rated
    made = {"cost_usd": array(total, pa.float64(), known), "cost_basis": _basis(observed, rated)}
    kinds = np.array([list(PARTS).index(k) if k in PARTS else -1 for k in actor_kind.values.to_pylist()] or [-1])
    kind = np.where(actor_kind.codes >= 0, kinds[actor_kind.codes], -1)
    whole = known & ~split
    for number, column in enumerate(PARTS.values()):
        value, given = parts[column]
        mine = whole & (kind == number)
        made[column] = array(np.where(mine, total, value), pa.float64(), given | mine)
    return made


def _rates(columns: Sequence[Coded], rates: Rates) -> Money:
    """Dollars an hour: by the first column that names one with a rate."""
    rate, known = np.zeros(len(columns[0].codes)), np.zeros(len(columns[0].codes), bool)
    for column in columns:
        of_name = [rates.get(name) for name in column.values.to_pylist()] if rates else []
        if not any(isinstance(r, float) for r in of_name):
            continue
        value = np.array([r if isinstance(r, float) else np.nan for r in of_name])[column.codes]
        mine = ~known & (column.codes >= 0) & ~np.isnan(value)
        rate, known = np.where(mine, value, rate), known | mine
    return rate, known


def _basis(observed: Bools, rated: Bools) -> pa.Array:
    if not observed.any() and not rated.any():
        return repeated(None, pa.string(), len(observed))
    places: Ints = np.where(observed, 0, np.where(rated, 1, -1)).astype(np.int32)
    return Coded(places, strings(["observed", "rate"])).array()


