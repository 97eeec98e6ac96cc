"""A bill of materials in every wheel (CycloneDX, at the place of PEP 770): what episodica needs, with the versions that
it was tested with. Hatchling calls it; nothing in it depends on when or where a wheel is built."""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = re.compile(r"[A-Za-z0-9._-]+")
NOT_FOR_USERS = {"all", "dev", "docs"}  # extras: the first names others, and these are for whoever changes episodica


class BillOfMaterials(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._place = TemporaryDirectory()
        file = Path(self._place.name, "episodica.cdx.json")
        found = bill(self.metadata.core, self.metadata.version, pins(Path(self.root)))
        file.write_text(json.dumps(found, indent=1) + "\n")
        build_data["sbom_files"].append(str(file))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._place.cleanup()


def pins(root: Path) -> dict[str, str]:
    """What constraints.txt pins: versions by name."""
    lines = (root / "constraints.txt").read_text().splitlines()
    return {same_name(line.split("==")[0]): line.split("==")[1] for line in lines if "==" in line and line[0] != "#"}


def same_name(name: str) -> str:
    """As package indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def bill(project: Any, version: str, tested: dict[str, str]) -> dict[str, Any]:
    """Of what the package itself asks for; what that needs is in the bills of those packages."""
    extras = {extra: needs for extra, needs in project.optional_dependencies.items() if extra not in NOT_FOR_USERS}
    optional = [need for needs in extras.values() for need in needs]
    needed = {_name(need): "required" for need in project.dependencies}
    needed |= {_name(need): "optional" for need in optional if _name(need) not in needed}
    components = [_component(name, tested[name]) | {"scope": scope} for name, scope in sorted(needed.items())]
    ours = _component(project.name, version) | {"licenses": [{"expression": project.license_expression}]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": ours},
        "components": components,
        "dependencies": [{"ref": ours["bom-ref"], "dependsOn": [component["bom-ref"] for component in components]}],
    }


def _name(requirement: str) -> str:
    found = NAME.match(requirement)
    assert found is not None, requirement
    return same_name(found[0])


def _component(name: str, version: str) -> dict[str, Any]:
    address = f"pkg:pypi/{name}@{version}"
    return {"type": "library", "bom-ref": address, "name": name, "version": version, "purl": address}
