"""Networks that are known by a name: what ``VENUELIMIT_TRUSTED_PROXIES = ["cloudflare"]`` stands for.

Each set says where it is published and when it was last held against that. A provider's list changes; a
set that lacks a new network makes its requests look as if they came from the provider itself, which limits
too many together, never too few.
"""

from __future__ import annotations

from typing import NamedTuple


class Edge(NamedTuple):
    """A named set of networks.

    :param source: who publishes it, and where.
    :param date: when it was last held against the source.
    """

    networks: tuple[str, ...]
    source: str
    date: str


EDGES = {
    "cloudflare": Edge(
        (
            "173.245.48.0/20",
            "103.21.244.0/22",
            "103.22.200.0/22",
            "103.31.4.0/22",
            "141.101.64.0/18",
            "108.162.192.0/18",
            "190.93.240.0/20",
            "188.114.96.0/20",
            "197.234.240.0/22",
            "198.41.128.0/17",
            "162.158.0.0/15",
            "104.16.0.0/13",
            "104.24.0.0/14",
            "172.64.0.0/13",
            "131.0.72.0/22",
            "2400:cb00::/32",
            "2606:4700::/32",
            "2803:f800::/32",
            "2405:b500::/32",
            "2405:8100::/32",
            "2a06:98c0::/29",
            "2c0f:f248::/32",
        ),
        "Cloudflare, cloudflare.com/ips",
        "2026-09-29",
    ),
    "google-load-balancers": Edge(
        ("35.191.0.0/16", "130.211.0.0/22", "2600:2d00:1:b029::/64", "2600:2d00:1:1::/64"),
        "Google Cloud, Load Balancing: firewall rules",
        "2026-11-30",
    ),
    "private": Edge(
        (
            "10.0.0.0/8",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "100.64.0.0/10",
            "169.254.0.0/16",
            "fc00::/7",
            "fe80::/10",
        ),
        "RFC 1918, RFC 6598, RFC 3927, RFC 4193, RFC 4291",
        "2026-11-30",
    ),
    "loopback": Edge(("127.0.0.0/8", "::1/128"), "RFC 1122, RFC 4291", "2026-11-30"),
}
