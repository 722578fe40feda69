"""The arithmetic of a shared address: how much everybody behind it may ask for together."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from .policies import SlidingWindow, parse
from .quantities import MOST, SECOND, plain, spell_rate


@dataclass(frozen=True)
class Sizing:
    """A limit for an address, and the sum that it comes from; made by :func:`size`.

    Both rates are brought to ``span``, the longer of their windows: who keeps to a rate keeps to it over a
    longer time too, while over a shorter one a whole window's worth may come at once.

    :param clients: how many people may stand behind the address.
    :param per_client: what one of them may ask for.
    :param extra: what is asked for besides, by all of them together; None for nothing.
    :param headroom: the factor on the sum.
    """

    clients: int
    per_client: SlidingWindow
    extra: SlidingWindow | None
    headroom: Fraction

    @property
    def span(self) -> int:
        """The window of the sum, in whole microseconds."""
        return max(self.per_client.span, self.extra.span if self.extra else 0)

    @property
    def of_clients(self) -> Fraction:
        """What the clients ask for in ``span``."""
        return self.clients * self._in_span(self.per_client)

    @property
    def of_extra(self) -> Fraction:
        """What is asked for besides in ``span``."""
        return self._in_span(self.extra) if self.extra else Fraction(0)

    @property
    def exact(self) -> Fraction:
        """The whole sum in ``span``, before it is rounded up."""
        return (self.of_clients + self.of_extra) * self.headroom

    @property
    def policy(self) -> SlidingWindow:
        """The limit: the sum, rounded up where it is no whole number, never down."""
        return SlidingWindow(math.ceil(self.exact), plain(Fraction(self.span, SECOND)))

    def spell(self, number: Fraction) -> str:
        """Spell so many in ``span``, such as ``600/minute``; see :func:`decimal`."""
        return decimal(number) + spell_rate(0, self.span)[1:]

    def _in_span(self, rate: SlidingWindow) -> Fraction:
        return Fraction(rate.limit * self.span, rate.span)


def size(clients: int, per_client: str, extra: str | None = None, headroom: float | str = 1) -> Sizing:
    """Reckon what a limit has to admit on an address that so many people share.

    :param clients: people behind the address, at least 1.
    :param per_client: what each may ask for, such as ``"6/minute"`` or ``"1/10s"``.
    :param extra: what all of them together ask for besides, in any unit.
    :param headroom: a factor on the sum, at least 1: with less, people who keep to their share are refused.
    :raises ValueError: one of these cannot be kept, or the sum is 0 or too large; the text says which.
    """
    if isinstance(clients, bool) or clients < 1:
        raise ValueError(
            f"clients is {clients!r}. Use a whole number of at least 1: the people at an address."
        )
    sizing = Sizing(
        clients,
        _rate("per_client", per_client),
        None if extra is None else _rate("extra", extra),
        _factor(headroom),
    )
    if not 0 < sizing.exact <= MOST:
        much = (
            "nothing, and a limit of 0 refuses everybody" if sizing.exact == 0 else "more than can be counted"
        )
        raise ValueError(f"the sum comes to {much}. Look at clients, per_client, extra and headroom again.")
    return sizing


def decimal(number: Fraction) -> str:
    """Spell a number with up to three decimals, the last one rounded up: ``1.25``."""
    whole, thousandths = divmod(math.ceil(number * 1000), 1000)
    return f"{whole}.{thousandths:03}".rstrip("0").rstrip(".")


def _rate(name: str, text: str) -> SlidingWindow:
    try:
        policies = parse(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if len(policies) > 1:
        raise ValueError(f"{name} is {text!r}, which is {len(policies)} rates. Use one, such as 6/minute.")
    rate = policies[0]
    assert isinstance(rate, SlidingWindow), "a text is a sliding window"
    return rate


def _factor(headroom: float | str) -> Fraction:
    text = str(headroom)
    # as it is written: 1.1 is eleven tenths
    factor = Fraction(text) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text) else Fraction(0)
    if factor < 1:
        raise ValueError(
            f"headroom is {text!r}. Use a number of at least 1, such as 1.25: with less, people who keep "
            "to their share are refused."
        )
    return factor
