"""Where classify, embed and sort look at images: in this process, or in those of a Ray cluster."""

from typing import Annotated, Literal

from cyclopts import Parameter

from episodica.cluster.connection import Disk
from episodica.cluster.spread import OnCluster
from episodica.errors import InputError

On = Annotated[Literal["local", "ray"], Parameter(help="look at images here, or on a Ray cluster")]
Address = Annotated[
    str | None, Parameter(help="with --on ray: auto or HOST:PORT of a cluster; by default one is started here")
]
Cpus = Annotated[int | None, Parameter(help="with --on ray: CPUs, and threads, of each process (1)")]
Disks = Annotated[
    Disk | None,
    Parameter(help="with --on ray: workers open the files on a shared disk, or get their bytes (own); auto: as it is"),
]


def cluster_of(on: str, address: str | None, cpus: int | None, disk: Disk | None) -> OnCluster | None:
    if on == "ray":
        return OnCluster(address, 1 if cpus is None else cpus, disk or "auto")
    for option, value in {"address": address, "cpus": cpus, "disk": disk}.items():
        if value is not None:
            raise InputError(f"--{option} goes with --on ray")
    return None
