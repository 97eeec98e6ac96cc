"""`episodica embed`: images as rows of numbers."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from episodica.cli.learn import Model
from episodica.cli.many_images import asked_of, check_images, listed, write_on
from episodica.cli.on_cluster import Address, Cpus, Disks, On, cluster_of
from episodica.cli.screen import app
from episodica.errors import InputError


@app.command
def embed(
    model: Model,
    /,
    *images: Annotated[
        Path, Parameter(allow_leading_hyphen=True, help="files, folders, patterns, addresses (s3://...)")
    ],
    out: Annotated[
        Path,
        Parameter(help="write to this file, .npy, and one beside it, .csv; killed at any moment, the same goes on"),
    ],
    on: On = "local",
    address: Address = None,
    cpus: Cpus = None,
    disk: Disks = None,
) -> int:
    """Write what the encoder of MODEL makes of each image: a row of numbers, to search by likeness or to learn from.

    FILE.npy is a NumPy array of float32, a row for each image; FILE.csv names the image of each row. Images that cannot
    be read are named there with the reason, their rows are NaN, and the exit code is then 1.
    """
    check_images(images)
    if images == (Path("-"),):
        raise InputError("how many rows there are must be known from the start: name files, folders or patterns")
    cluster = cluster_of(on, address, cpus, disk)
    from episodica.classifier.embed import embed_batch, width
    from episodica.classifier.vector_file import check_name, vector_file

    check_name(out)
    asked = asked_of(model)
    with listed(images) as files:
        names = (image.name for image in files)
        with vector_file(out, f"embed {asked.order}", names, len(files), width(asked.recogniser)) as file:
            return write_on(file, asked, files, cluster, embed_batch, ("embedding", "embedded"))
