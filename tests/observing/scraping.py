"""What Prometheus reads in a scrape."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample


def samples(text: str) -> list[Sample]:
    """The samples of a scrape that are ours, without the times at which they were created."""
    families = text_string_to_metric_families(text)
    found = [sample for family in families for sample in family.samples]
    return [
        each for each in found if each.name.startswith("venuelimit_") and not each.name.endswith("_created")
    ]


def scrape(registry: CollectorRegistry) -> list[Sample]:
    """What a scrape of a registry finds."""
    return samples(generate_latest(registry).decode())


def values(found: list[Sample], name: str) -> dict[tuple[str, ...], float]:
    """The values of one metric that are not 0, by the values of its labels."""
    return {tuple(each.labels.values()): each.value for each in found if each.name == name and each.value}
