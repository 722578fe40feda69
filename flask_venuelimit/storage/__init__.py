"""Where the counts live: the protocol every store follows, and how a URI becomes a store.

A store knows no limit names, no identities and no pages. It is handed charges, decides them in one
atomic step, and answers with receipts.
"""

from __future__ import annotations

from .opening import as_storage, open_storage
from .protocols import Counting, Storage

__all__ = ["Counting", "Storage", "as_storage", "open_storage"]
