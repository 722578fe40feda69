"""How a URI that names servers becomes a line to them: one server, Sentinel's service, or a cluster."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, parse_qs, urlsplit

import redis
import redis.cluster
import redis.connection
import redis.sentinel
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry

from ..errors import ConfigurationError
from .clients import ClusterLine, Line, close_with

_T = TypeVar("_T")
# these have no types of redis-py's own
_ClusterNode: Any = redis.cluster.ClusterNode
_Sentinel: Any = redis.sentinel.Sentinel
_parse_url: Any = redis.connection.parse_url

#: What redis-py calls the schemes it does not know.
_TRANSLATED = {"valkey": "redis", "valkeys": "rediss"}
#: Options of Sentinel itself; all others are those of the connections to the server it names.
_SENTINEL_S_OWN = ("sentinel_kwargs", "min_other_sentinels", "force_master_ip")
_CLUSTER_S_OWN = frozenset(inspect.signature(RedisCluster.__init__).parameters) - {"kwargs", "self"}
_SENTINEL_PORT, _CLUSTER_PORT = 26379, 6379


def defaults() -> dict[str, Any]:
    """The options of connections that give up quickly: the breaker sees to what follows."""
    return {
        "socket_connect_timeout": 0.25,
        "socket_timeout": 0.1,
        # redis-py 8 would try ten times
        "retry": Retry(NoBackoff(), 0),
        # one answer a command, and no notice that would stretch time-outs to ten seconds
        "protocol": 2,
        # redis-py 8 would fail the hundred and first request that is on its way at once
        "max_connections": 100_000,
    }


def one_server(uri: str, scheme: str, options: Mapping[str, Any]) -> Line:
    """Lead to one server; ``scheme`` is ``redis``, ``rediss``, ``unix``, ``valkey`` or ``valkeys``.

    :raises ConfigurationError: the URI or an option cannot be kept. The text shows no password.
    """
    parts = split(uri)
    _check_place(parts, scheme)
    url = _TRANSLATED.get(scheme, scheme) + uri[len(scheme) :]
    # before redis-py 6 any trusted certificate would do, whoever's it is
    named = {"ssl_check_hostname": True} if url.startswith("rediss:") else {}

    def make() -> redis.Redis:
        client = redis.Redis.from_url(url, **defaults() | named | dict(options))
        return _tried(client)

    return _own(_taken(make, [*_query(parts.query), *options]))


def sentinels(uri: str, options: Mapping[str, Any]) -> Line:
    """Lead to the primary of a service, as Sentinel names it: ``redis+sentinel://h1:p,h2:p/service``.

    User and password are the server's; those of Sentinel go into the option ``sentinel_kwargs``.

    :raises ConfigurationError: as :func:`one_server`.
    """
    named = _several(uri, _SENTINEL_PORT)
    service, _, database = named.path.partition("/")
    if not service or not re.fullmatch("[0-9]*/?", database):
        raise bad(
            "names no service of Sentinel's. Use redis+sentinel://host1:26379,host2:26379/service, and "
            "/service/1 for database 1."
        )

    def make() -> redis.Redis:
        given = defaults() | _parsed(named, database) | dict(options)
        own = {name: given.pop(name) for name in _SENTINEL_S_OWN if name in given}
        own["sentinel_kwargs"] = defaults() | dict(own.get("sentinel_kwargs") or {})
        client: redis.Redis = _Sentinel(named.hosts, **own, **given).master_for(service)
        return _tried(client)

    return _own(_taken(make, [*_query(named.query), *options]))


def cluster(uri: str, options: Mapping[str, Any]) -> Line:
    """Lead to the servers of a cluster: ``redis+cluster://h1:p,h2:p``, any of them.

    :raises ConfigurationError: as :func:`one_server`.
    """
    named = _several(uri, _CLUSTER_PORT)
    if named.path.strip("/") not in ("", "0"):
        raise bad("names a database, and a cluster has only 0. Use redis+cluster://host1:6379,host2:6379.")
    names = [*_query(named.query), *options]
    given = _taken(lambda: defaults() | _parsed(named, "") | dict(options), names)
    retry = given.pop("retry")
    connections = {name: value for name, value in given.items() if name not in _CLUSTER_S_OWN}
    # a cluster's client is not made before it is needed, since it connects at once
    _taken(lambda: _tried(redis.Redis(**connections)), names)
    # a slot that nobody has must not fail those that somebody has
    settings = {"require_full_coverage": False, "retry": retry, **_tries(), **given}

    def make() -> RedisCluster:
        return RedisCluster(startup_nodes=[_ClusterNode(*host) for host in named.hosts], **settings)

    return ClusterLine(make, f"cluster={', '.join(f'{host}:{port}' for host, port in named.hosts)}")


def split(uri: str) -> SplitResult:
    """Take a URI of one place apart.

    :raises ConfigurationError: its host or port cannot be read.
    """
    try:
        parts = urlsplit(uri)
        sound = parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise _unreadable()
    return parts


def bad(what: str) -> ConfigurationError:
    """Make the error that says what is wrong with the setting."""
    return ConfigurationError(f"VENUELIMIT_STORAGE_URI {what}")


def _own(client: redis.Redis) -> Line:
    line = Line(client)
    close_with(line, client)
    return line


class _Several(NamedTuple):
    """A URI of several places, taken apart."""

    user: str
    hosts: list[tuple[str, int]]
    path: str
    query: str


def _several(uri: str, port: int) -> _Several:
    _, _, rest = uri.partition("://")
    if "#" in rest:
        raise _hash_sign()
    rest, _, query = rest.partition("?")
    place, _, path = rest.partition("/")
    user, _, hosts = place.rpartition("@")
    if "," in user:
        # one user for all: a second @ would take the first hosts for a password
        raise _unreadable()
    return _Several(user, [_host(each, port) for each in hosts.split(",")], path, query)


def _host(text: str, port: int) -> tuple[str, int]:
    parts = split(f"redis://{text}")
    if not parts.hostname or parts.netloc != text or not text.isprintable() or " " in text:
        raise _unreadable()
    return parts.hostname, parts.port or port


def _parsed(named: _Several, database: str) -> dict[str, Any]:
    """What redis-py reads in the URI beside the hosts."""
    found: dict[str, Any] = _parse_url(f"redis://{named.user}@h/{database}?{named.query}")
    del found["host"]
    return found


def _tries() -> dict[str, int]:
    """Before redis-py 6 a cluster's client counts its tries by itself."""
    return {} if int(redis.__version__.split(".")[0]) > 5 else {"cluster_error_retry_attempts": 0}


def _tried(client: redis.Redis) -> redis.Redis:
    """Make a connection and throw it away unconnected: only so does redis-py tell which options it knows."""
    pool = client.connection_pool
    pool.connection_class(**pool.connection_kwargs)
    return client


def _taken(make: Callable[[], _T], names: list[str]) -> _T:
    """Make what redis-py is to make; an option it does not take is named."""
    try:
        return make()
    except (TypeError, ValueError, redis.RedisError) as error:
        problem = _name_option(error, names)
    # outside the except block, so that no traceback leads to redis-py's own text and the URL in it
    raise ConfigurationError(problem)


def _query(query: str) -> list[str]:
    return list(parse_qs(query, keep_blank_values=True))


def _check_place(parts: SplitResult, scheme: str) -> None:
    if parts.fragment:
        raise _hash_sign()
    if scheme == "unix":
        if not parts.path.strip("/"):
            raise bad("names no socket. Use unix:///path/to/redis.sock.")
    elif not re.fullmatch("/?[0-9]*/?", parts.path):
        raise bad("has a path that is no database number. Use redis://host:port/0.")


def _hash_sign() -> ConfigurationError:
    return bad("has a # in it. Percent-encode special characters in a password.")


def _unreadable() -> ConfigurationError:
    return bad(
        "has a host or port that cannot be read. Use a port from 1 to 65535, and percent-encode "
        "special characters in a password."
    )


def _name_option(error: Exception, names: list[str]) -> str:
    """Say which option redis-py would not take; its value may be a secret, so only by its name."""
    quoted = [name for name in names if name in re.findall(r"\w+", str(error))]
    which = f"the option {quoted[0]!r}" if quoted else "an option"
    return (
        f"VENUELIMIT_STORAGE_URI or VENUELIMIT_STORAGE_OPTIONS has {which} that redis-py does not take "
        f"({type(error).__name__}). The names and values are those of redis.Redis(...)."
    )
