"""Keeps trained models in the lake: `models/<kind>/<model>/` with weights and a card, and which one serves.

A model is never changed after it was written. `current.json` names the models that are kept, the newest first, and the
champions, the latest first. The latest champion whose files are sound serves; a damaged one is named with its reason,
and the champion before it serves. A model that was never promoted, a challenger, does not serve.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from opus_pipelines.core.errors import InputError, LakeError, OpusError
from opus_pipelines.lake.layout import Lake, read_json, write_json

if TYPE_CHECKING:  # a command that compares versions looks for models and loads none
    import numpy as np

CARD = "card.json"
POINTER, STEP_WRITER, INTENTION = "pointer", "step_writer", "intention"  # kinds that the pointer backend opens
KEPT = 5  # newest models that stay; the last champions stay, too
CHAMPIONS = 3  # champions that are remembered, so that one serves where the files of a later one are damaged
M = TypeVar("M")
T = TypeVar("T")


@dataclass(frozen=True)
class Stored:
    """A model in the lake: its card, and why it cannot be used, None where it can."""

    model_id: str
    card: Mapping[str, Any]
    problem: str | None = None


@dataclass(frozen=True)
class Opened(Generic[T]):
    """What serves, None where no champion is sound; all kept models, the newest first; the champion that was named."""

    champion: T | None = None
    stored: list[Stored] = field(default_factory=list)
    named: str | None = None


@dataclass(frozen=True)
class ModelStore:
    """The models of one kind in a lake. Whoever writes holds the lake's lock."""

    lake: Lake
    kind: str

    @property
    def folder(self) -> Path:
        """The folder of all models of this kind."""
        return self.lake.root / "models" / self.kind

    def names(self) -> list[str]:
        """Returns the ids of the models that are kept, the newest first."""
        return self._listed("models")

    def champions(self) -> list[str]:
        """Returns the ids of the models that were promoted, the latest first."""
        return self._listed("champions")

    def keep(self, model_id: str, card: Mapping[str, Any], write: Callable[[Path], Mapping[str, Any]]) -> None:
        """Writes a model as the newest; one that is there is written again.

        `write` puts its weights into a folder, and returns what the card says of them.
        """
        with self.lake.staging() as staged:
            made = staged / model_id
            made.mkdir()
            of_weights = write(made)
            write_json(made / CARD, {**card, **of_weights, "model": model_id})
            self.folder.mkdir(parents=True, exist_ok=True)
            self.lake.remove(self.folder / model_id)
            self.lake.publish(made, self.folder / model_id)
        models = [model_id, *(name for name in self.names() if name != model_id)]
        champions = self.champions()
        kept = [name for n, name in enumerate(models) if n < KEPT or name in champions]
        self.lake.replace_json(self._pointer, {"models": kept, "champions": champions})
        for old in set(models) - set(kept):
            self.lake.remove(self.folder / old)

    def promote(self, model_id: str) -> None:
        """Lets a kept model serve. Raises InputError where there is no such model."""
        if model_id not in self.names():
            raise InputError(f"no model {model_id!r}; there are: {', '.join(self.names()) or 'none'}")
        champions = [model_id, *(name for name in self.champions() if name != model_id)]
        self.lake.replace_json(self._pointer, {"models": self.names(), "champions": champions[:CHAMPIONS]})

    def open(self, read: Callable[[Path, str, Mapping[str, Any]], T]) -> Opened[T]:
        """Returns the champion that serves and what is known of all models; `read` loads one or raises OpusError."""
        found: dict[str, T] = {}
        stored: list[Stored] = []
        for name in self.names():
            card: Mapping[str, Any] = {}
            try:
                card = _card(self.folder / name)
                found[name] = read(self.folder / name, name, card)
                stored.append(Stored(name, card))
            except (OpusError, OSError) as error:
                stored.append(Stored(name, card, str(error)))
        champions = self.champions()
        serving = next((name for name in champions if name in found), None)
        return Opened(found.get(serving) if serving else None, stored, champions[0] if champions else None)

    @property
    def _pointer(self) -> Path:
        return self.folder / "current.json"

    def _listed(self, key: str) -> list[str]:
        pointer = read_json(self._pointer) or {}
        # a lake of before there were challengers names models alone: each of them was let serve
        names = pointer.get(key, pointer.get("models", []))
        if not isinstance(names, list) or not all(isinstance(name, str) and name.isalnum() for name in names):
            raise LakeError(f"{self._pointer} does not list models under {key!r}; was it edited by hand?")
        return names


@dataclass(frozen=True)
class ModelKind(Generic[M, T]):
    """One kind of models: how a model M is named, written, and read as what serves, a T.

    Attributes:
        name: of the folder in the lake, and of the registered model in MLflow.
        version: of what is computed with the weights; a model of another version is not used.
        id_of: returns the id of a model, a hash of its weights and of the version.
        write: writes the weights into a folder, and returns what the card says of them.
        read: reads a model that has this id; raises OpusError where it cannot be used.
    """

    name: str
    version: int
    id_of: Callable[[M], str]
    write: Callable[[M, Path], Mapping[str, Any]]
    read: Callable[[Path, str, Mapping[str, Any]], T]

    def store(self, lake: Lake) -> ModelStore:
        """Returns the models of this kind in a lake."""
        return ModelStore(lake, self.name)

    def keep(self, lake: Lake, model: M, card: Mapping[str, Any]) -> str:
        """Writes a model with its card as the newest, and returns its id; it serves once it is promoted."""
        model_id = self.id_of(model)
        version = {"version": self.version}
        self.store(lake).keep(model_id, card, lambda folder: {**self.write(model, folder), **version})
        return model_id

    def open(self, lake: Lake) -> Opened[T]:
        """Returns what serves, and what is known of all models; a damaged one is named with its reason."""
        return self.store(lake).open(self.read)


def _card(folder: Path) -> Mapping[str, Any]:
    card = read_json(folder / CARD)
    if card is None:
        raise LakeError(f"its files are missing in {folder}; run `opus train`")
    if not isinstance(card, dict):
        raise LakeError(f"{CARD} is no object; run `opus train`")
    return card


Tensors = Mapping[str, "np.ndarray"]
LARGEST = 64 * 2**20  # bytes of a file of weights: a task reader has 22 MB; a larger file is not read


def content_of(tensors: Tensors) -> Iterator[str]:
    """Yields name, shape and bytes of each array as text, of which the id of a model is made."""
    return (f"{name} {part.shape} {part.tobytes().hex()}" for name, part in tensors.items())


def save_tensors(tensors: Tensors, file: Path) -> None:
    """Writes arrays as safetensors, for whom the lake's other files are for: `save_file` lets the owner alone read."""
    import numpy as np
    from safetensors.numpy import save

    file.write_bytes(save({name: np.ascontiguousarray(part) for name, part in tensors.items()}))


def read_tensors(file: Path, what: str) -> "dict[str, np.ndarray]":
    """Reads the arrays of a safetensors file; `what` names the model in errors.

    Raises LakeError where the file is damaged, or larger than `LARGEST`.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if file.stat().st_size > LARGEST:
        raise LakeError(f"{file.name} has {file.stat().st_size:,} bytes, more than {what} has; not read")
    try:
        found: dict[str, np.ndarray] = load_file(file)
    except (SafetensorError, ValueError, KeyError) as error:  # the last two: types that NumPy does not have
        raise LakeError(f"{file.name} is damaged ({error}); run `opus train`") from None
    return found


def served_industries(card: Mapping[str, Any]) -> frozenset[str]:
    """Returns the industries that a model serves by its card. Raises LakeError where the card does not say it."""
    industries = card.get("industries")
    if not isinstance(industries, dict) or not all(isinstance(one, dict) for one in industries.values()):
        raise LakeError(f"{CARD} does not say which industries it serves; run `opus train`")
    return frozenset(name for name, figures in industries.items() if figures.get("serves") is True)
