"""The edge weight γ of LWM (2) and its λ.

λ is given by the settings, kept from an earlier snapshot, or chosen so that the median edge has γ = 0.5.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from opus_pipelines.core.ids import digest
from opus_pipelines.core.settings import Wkg


@dataclass(frozen=True)
class LambdaRule:
    """The source of λ.

    `token` stands for it in the id of the snapshot: a λ that a snapshot chose has the same token when it is kept.
    """

    value: float | None  # None: to be chosen from this snapshot's edges
    unit: str
    token: str
    kept: bool  # is it, or will it be, in lambda.json


def lambda_rule(settings: Wkg, kept: Mapping[str, Any] | None, inputs: str, reset: bool = False) -> LambdaRule:
    """Returns the rule in force; `inputs` is the hash of all other inputs of the snapshot.

    λ is kept for each unit separately.
    """
    unit = settings.gamma_unit
    if settings.lambda_ is not None:
        return LambdaRule(settings.lambda_, unit, digest("set", settings.lambda_), kept=False)
    if kept and unit in kept and not reset:
        return LambdaRule(kept[unit]["lambda"], unit, kept[unit]["chosen_from"], kept=True)
    return LambdaRule(None, unit, digest("median", inputs), kept=True)


def choose_lambda(counts: Sequence[int]) -> float | None:
    """Returns the λ in ]0, 1] that gives an edge of the median count γ = 0.5; None without edges."""
    return min(1.0, math.log(2) / median(counts)) if counts else None


def gamma(lambda_: float, count: int) -> float:
    """Returns 1 − exp(−λ·|ξ|), equation (2) of LWM."""
    return -math.expm1(-lambda_ * count)
