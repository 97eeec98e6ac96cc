"""The Hugging Face Hub, or its copy on this machine: which files a repository has, one of them, a commit of ours.

Where there is no network, or HF_HUB_OFFLINE=1, what was fetched before is found in the Hub's own cache (HF_HUB_CACHE).
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from episodica.classifier.sharing.hub_name import HubName
from episodica.errors import InputError, not_installed

QUIET = {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}  # where the user has not chosen so


class Listing(NamedTuple):
    commit: str
    sizes: dict[str, int]  # bytes, by name


class Hub:
    def __init__(self) -> None:
        for key, value in QUIET.items():
            os.environ.setdefault(key, value)
        try:
            import huggingface_hub
        except ImportError:
            raise not_installed("models of the Hub need huggingface_hub", "hub") from None
        self._hub: Any = huggingface_hub
        self._endpoint = os.environ.get("HF_ENDPOINT")
        self._cache = os.environ.get("HF_HUB_CACHE")
        self._api = huggingface_hub.HfApi(endpoint=self._endpoint, library_name="episodica")

    def listing(self, name: HubName) -> Listing:
        """As the Hub says it, or as it was when it was last asked."""
        with self._explaining(name):
            if os.environ.get("HF_HUB_OFFLINE") in (None, "", "0"):
                try:
                    info = self._api.model_info(name.repository, revision=name.revision, files_metadata=True)
                    return Listing(str(info.sha), {file.rfilename: file.size or 0 for file in info.siblings or ()})
                except self._hub.errors.HfHubHTTPError:
                    raise
                except (self._hub.errors.HTTPError, ConnectionError):
                    pass  # it cannot be reached
            snapshot = Path(
                self._hub.snapshot_download(
                    name.repository, revision=name.revision, cache_dir=self._cache, local_files_only=True
                )
            )
            files = [path for path in snapshot.rglob("*") if path.is_file()]
            return Listing(
                snapshot.name, {path.relative_to(snapshot).as_posix(): path.stat().st_size for path in files}
            )

    def fetch(self, name: HubName, commit: str, file: str) -> Path:
        with self._explaining(name):
            return Path(
                self._hub.hf_hub_download(
                    name.repository, file, revision=commit, cache_dir=self._cache, endpoint=self._endpoint
                )
            )

    def commit(self, repository: str, files: Mapping[str, bytes], message: str, *, private: bool) -> str:
        """Make these the files of a repository, which is made where there is none; the id of the commit."""
        with self._explaining(HubName(repository)):
            self._api.create_repo(repository, private=private, exist_ok=True)
            there = self.listing(HubName(repository)).sizes
            add = [self._hub.CommitOperationAdd(name, data) for name, data in files.items()]
            gone = [name for name in there if name not in files and name != ".gitattributes"]
            drop = [self._hub.CommitOperationDelete(name) for name in gone]
            return str(self._api.create_commit(repository, [*add, *drop], commit_message=message).oid)

    @contextmanager
    def _explaining(self, name: HubName) -> Iterator[None]:
        """What the Hub refuses, in one sentence."""
        errors = self._hub.errors
        try:
            yield
        except errors.GatedRepoError:
            raise InputError(f"{name} asks for an agreement: accept it on its page, then say `hf auth login`") from None
        except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError):
            raise InputError(
                f"{name} is not on the Hub, or is private: check the name, or say `hf auth login`"
            ) from None
        except errors.LocalEntryNotFoundError:
            raise InputError(f"{name} is not on this machine and the Hub cannot be reached: try again online") from None
        except (errors.HTTPError, ConnectionError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise InputError(f"the Hub does not do this for {name}: {reason}; `hf auth login` may be missing") from None
