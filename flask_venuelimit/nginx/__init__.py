"""nginx in front of an app: a configuration that keeps of its limits what nginx can keep."""

from __future__ import annotations

from .config import Where, nginx_config

__all__ = ["Where", "nginx_config"]
