"""What the pages of all web applications share, and the media types of their files."""

from pathlib import Path

SHARED = tuple(Path(__file__).with_name(name) for name in ("dom.js", "icon.svg"))
MEDIA_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
