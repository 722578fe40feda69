"""What is looked at: one app under its limiter, its limits, its storage and where it runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from flask import Flask

from ..limits import Limit
from ..overview import Share, shares
from ..policies import Policy
from ..settings import Settings
from ..state import AppState
from .server import Checkup, check_up


class Setup:
    """What is looked at. What is dear to find out is found out once.

    :param apps: all apps that the limiter serves.
    :param environ: the environment of this process, which is taken for the server's.
    """

    def __init__(self, state: AppState, apps: Collection[Flask], environ: Mapping[str, str]) -> None:
        self.state = state
        self.apps = apps
        self.environ = environ

    @property
    def app(self) -> Flask:
        """The app."""
        return self.state.app

    @property
    def config(self) -> Mapping[str, Any]:
        """The app's config as it is now."""
        return self.state.app.config

    @property
    def settings(self) -> Settings:
        """The settings that were read by ``init_app``."""
        return self.state.settings

    @property
    def storage_given(self) -> bool:
        """Whether the limiter was given a storage object, which outranks the URI."""
        return getattr(self.state.owner, "storage", None) is not None

    @property
    def limits(self) -> list[Limit]:
        """Every limit that is declared."""
        return self.state.declared.limits

    @cached_property
    def shares(self) -> list[Share]:
        """Every bucket that some request is charged to."""
        return [share for share in shares(self.state) if share.places]

    @cached_property
    def checkup(self) -> Checkup:
        """What the storage says."""
        return check_up(self.state.raw_storage, self.settings.key_prefix)


def policies(share: Share) -> list[Policy]:
    """A limit's policies, where they are known before a request."""
    cells = share.bucket.cells
    return [] if callable(cells) else [policy for _, policy in cells]


def kinds(share: Share) -> frozenset[str]:
    """The kinds of subject that a limit's key is made of."""
    return share.bucket.limit.terms.key.made_of
