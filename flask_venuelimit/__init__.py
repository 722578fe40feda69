"""Rate limiting for Flask where many people share one address."""

from .decisions import Decision
from .errors import ConfigurationError
from .extension import VenueLimit
from .keys import Key, Stage, by_bearer, by_identity, by_ip, by_participant, by_user
from .limits import Limit
from .policies import Concurrency, FixedWindow, LeakyBucket, SlidingLog, SlidingWindow, TokenBucket
from .refusals import LimiterUnavailable, RateLimited
from .signals import capacity_reached, limit_refused, storage_failed, storage_recovered
from .storage.memory import MemoryStorage
from .storage.redis import RedisStorage
from .subjects import Subject

__all__ = [
    "Concurrency",
    "ConfigurationError",
    "Decision",
    "FixedWindow",
    "Key",
    "LeakyBucket",
    "Limit",
    "LimiterUnavailable",
    "MemoryStorage",
    "RateLimited",
    "RedisStorage",
    "SlidingLog",
    "SlidingWindow",
    "Stage",
    "Subject",
    "TokenBucket",
    "VenueLimit",
    "by_bearer",
    "by_identity",
    "by_ip",
    "by_participant",
    "by_user",
    "capacity_reached",
    "limit_refused",
    "storage_failed",
    "storage_recovered",
]
