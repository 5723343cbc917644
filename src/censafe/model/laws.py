"""Noise laws on the integers, named by exact rational parameters."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

__all__ = ["NoiseLaw"]


@dataclass(frozen=True)
class NoiseLaw:
    """A discrete Gaussian or a two-sided geometric law, by value.

    Build one with :meth:`gaussian` or :meth:`laplace`.

    Args:
        kind: ``gaussian`` or ``laplace``.
        parameter: sigma^2 of a discrete Gaussian, or the scale of a two-sided geometric law; above 0.

    Source: Canonne, Kamath & Steinke, "The Discrete Gaussian for Differential Privacy" (2020).

    Example:
        >>> NoiseLaw.gaussian(Fraction(4)).parameter
        Fraction(4, 1)
    """

    kind: Literal["gaussian", "laplace"]
    parameter: Fraction

    def __post_init__(self) -> None:
        if self.kind not in ("gaussian", "laplace"):
            raise ValueError(f"kind of noise law must be gaussian or laplace, not {self.kind!r}")
        if not isinstance(self.parameter, Fraction):
            raise TypeError(
                f"parameter of a noise law must be a Fraction, not {type(self.parameter).__name__}"
            )
        if self.parameter <= 0:
            raise ValueError("parameter of a noise law must be positive")

    @classmethod
    def gaussian(cls, sigma2: Fraction) -> NoiseLaw:
        """Discrete Gaussian, P(k) proportional to exp(-k^2 / (2 sigma2))."""
        return cls("gaussian", sigma2)

    @classmethod
    def laplace(cls, scale: Fraction) -> NoiseLaw:
        """Two-sided geometric (discrete Laplace), P(k) proportional to exp(-abs(k) / scale)."""
        return cls("laplace", scale)

    @property
    def bureau_name(self) -> str:
        """The name that the Bureau's output files use for this law."""
        return "Discrete Gaussian" if self.kind == "gaussian" else "Two-Sided Geometric"
