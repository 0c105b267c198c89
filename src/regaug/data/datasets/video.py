"""EchoNet-Dynamic: ultrasound videos of the heart, and the share of blood it ejects."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor

from regaug._checks import check_integer
from regaug._random import Stream, numpy_generator
from regaug.data.base import Data, Rows, Rules, Split, check_split
from regaug.data.datasets.facts import DATASETS
from regaug.data.datasets.files import expect, find, read_columns
from regaug.data.lazy import Lazy
from regaug.exceptions import DataError, DataNotFoundError, MissingExtraError

if TYPE_CHECKING:
    import pandas as pd

_SIZE = 112
_SAMPLED = 128  # videos that the mean and the standard deviation are taken from
_PAD = 12  # pixels that a training clip may be moved by
_LISTED = ("FileName", "EF", "NumberOfFrames", "Split")
_TRACED = ["FileName", "X1", "Y1", "X2", "Y2", "Frame"]
_SPLITS = ("TRAIN", "VAL", "TEST")

Pixels = NDArray[np.uint8]
Floats = NDArray[np.float64]
Scale = tuple[Floats, Floats]  # mean and standard deviation of each channel


def load_echo(*, path: str | Path | None = None, frames: int = 32, period: int = 2) -> "Echo":
    """Load EchoNet-Dynamic; the target is the ejection fraction in percent.

    A sample is a clip ``(3, frames, 112, 112)`` of every ``period``-th frame, standardized per
    channel.
    """
    _av()
    return Echo(find(path, "echonet"), frames=frames, period=period)


class Echo(Data):
    """EchoNet-Dynamic; ``load_echo`` returns one.

    A row is a video of ``FileList.csv``, without those that have fewer than two traced frames.
    """

    info = DATASETS["echo"].info

    def __init__(self, folder: Path, *, frames: int = 32, period: int = 2) -> None:
        table = _read_list(folder)
        self.frames = check_integer("frames", frames, 1)
        self.period = check_integer("period", period, 1)
        self._folder = str(folder / "Videos")
        self._names = table["FileName"].to_numpy().astype(str)
        self.y = table["EF"].to_numpy(np.float64)[:, None]
        self._lengths = table["NumberOfFrames"].to_numpy(dtype=np.int64)
        split = table["Split"].to_numpy().astype(str)
        self._rows: list[Rows] = [np.flatnonzero(split == name) for name in _SPLITS]
        self._scale: Scale | None = None

    def split(self, seed: int = 0, *, protocol: Rules = "tuned") -> Split:
        """Split as the list says; training clips differ from epoch to epoch, and by the seed.

        A training clip starts at a random frame and is moved by up to 12 pixels, as in the paper's
        scripts; see :class:`RandomClips`. The other clips start at frame 0 and stay where they
        are. The scripts average the prediction for a test video over its clips from every possible
        start; here it is that of its first clip. The first call reads up to 128 training videos,
        for the mean and standard deviation of each channel. The two protocols are the same.
        """
        check_split(seed, protocol)
        train, validation, test = self._rows
        form = (self.frames, self.period, self.scale())
        moved = RandomClips(self._paths(train), self._lengths[train], seed, *form)
        return Split(
            self._samples(moved, train),
            self._samples(Clips(self._paths(validation), *form), validation),
            self._samples(Clips(self._paths(test), *form), test),
        )

    def scale(self) -> Scale:
        """Return mean and standard deviation of each channel, of random training videos."""
        if self._scale is None:
            rows = numpy_generator(Stream.COLORS, 0).permutation(self._rows[0])[:_SAMPLED]
            counts = np.zeros((3, 256))
            for name in self._names[np.sort(rows)]:
                for frame in read_frames(Path(self._folder, name)):
                    counts += [np.bincount(frame[..., c].ravel(), minlength=256) for c in range(3)]
            levels = np.arange(256)
            mean = counts @ levels / counts.sum(axis=1)
            variance = counts @ levels**2 / counts.sum(axis=1) - mean**2
            # A channel without contrast is only shifted.
            self._scale = mean, np.where(variance > 1e-6, np.sqrt(np.maximum(variance, 0)), 1.0)
        return self._scale

    def _paths(self, rows: Rows) -> list[str]:
        return [os.path.join(self._folder, name) for name in self._names[rows]]


class Clips(Lazy):
    """The first clips of videos, read when they are asked for; frames after the end are zero."""

    def __init__(self, paths: list[str], frames: int, period: int, scale: Scale) -> None:
        super().__init__(len(paths), (3, frames, _SIZE, _SIZE))
        self.paths, self.frames, self.period = paths, frames, period
        self.mean, self.std = (torch.from_numpy(values).float() for values in scale)

    def _read(self, place: int) -> Tensor:
        return self.cut(place, 0)

    def cut(self, place: int, start: int) -> Tensor:
        """Return the clip of a video that begins at frame ``start``."""
        stop = start + (self.frames - 1) * self.period + 1
        wanted = list(read_frames(Path(self.paths[place]), slice(start, stop, self.period)))
        # Padded after standardization, as the paper's scripts do: zero is the mean gray.
        clip = torch.zeros(3, self.frames, _SIZE, _SIZE)
        if wanted:
            pixels = torch.from_numpy(np.stack(wanted)).float()
            clip[:, : len(wanted)] = ((pixels - self.mean) / self.std).permute(3, 0, 1, 2)
        return clip


class RandomClips(Clips):
    """A clip of each video, with another start and another crop in every epoch.

    The frames are padded with 12 zero pixels on every side and cropped back to their size. What is
    drawn for a video depends on the seed, the epoch and the video's place alone.
    """

    def __init__(
        self, paths: list[str], lengths: Rows, seed: int, frames: int, period: int, scale: Scale
    ) -> None:
        super().__init__(paths, frames, period, scale)
        self.lengths, self.seed = lengths, seed
        # In shared memory, so that the copies in a loader's workers follow it.
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose clips are read from now on; at first it is 0."""
        self._epoch.fill_(check_integer("epoch", epoch, 0))

    def draw(self, place: int) -> tuple[int, int, int]:
        """Return the first frame of a clip, and the upper left corner of its crop."""
        rng = numpy_generator(Stream.CLIPS, self.seed, int(self._epoch), place)
        # As in the echonet code, the start of a video that is too short is drawn after padding it,
        # and the lowest and the rightmost crop never come.
        length = max(int(self.lengths[place]), self.frames * self.period)
        start = rng.integers(length - (self.frames - 1) * self.period)
        top, left = rng.integers(2 * _PAD, size=2)
        return int(start), int(top), int(left)

    def _read(self, place: int) -> Tensor:
        start, top, left = self.draw(place)
        padded = F.pad(self.cut(place, start), (_PAD,) * 4)
        return padded[..., top : top + _SIZE, left : left + _SIZE]


def read_frames(path: Path, which: slice = slice(None)) -> Iterator[Pixels]:
    """Yield frames of a video, ``(112, 112, 3)``, red, green, blue; all if not said which."""
    av = _av()
    try:
        with av.open(str(path)) as container:
            frames = container.decode(video=0)
            # Cut before the conversion to pixels, which takes longer than all decoding.
            for frame in islice(frames, which.start, which.stop, which.step):
                pixels: Pixels = frame.to_ndarray(format="rgb24")
                if pixels.shape != (_SIZE, _SIZE, 3):
                    raise DataError(
                        f"{path} must have frames of {_SIZE} x {_SIZE} pixels, "
                        f"got {pixels.shape[0]} x {pixels.shape[1]}."
                    )
                yield pixels
    except (av.error.FFmpegError, IndexError) as error:
        raise DataError(f"{path} must be a video: {error}.") from None


def _av() -> ModuleType:
    try:
        import av
    except ImportError:
        message = 'The video data needs an extra: pip install "regaug[video]".'
        raise MissingExtraError(message) from None
    return av


def _read_list(folder: Path) -> "pd.DataFrame":
    """Return the videos that are used: file name, EF, number of frames, part."""
    needed = "FileList.csv, VolumeTracings.csv and Videos/<FileName>.avi"
    for name in ("FileList.csv", "VolumeTracings.csv", "Videos"):
        expect(folder / name, f". EchoNet-Dynamic needs {needed} in its folder.")
    table = read_columns(folder / "FileList.csv", _LISTED, FileName=str, Split=str)
    table["Split"] = table["Split"].str.upper()
    if not table["Split"].isin(_SPLITS).all():
        other = table["Split"][~table["Split"].isin(_SPLITS)].iloc[0]
        raise DataError(f"`Split` in FileList.csv must be TRAIN, VAL or TEST, got {other!r}.")
    table["FileName"] = table["FileName"].str.removesuffix(".avi") + ".avi"
    _check_rows(table)
    table = table[table["FileName"].isin(_traced(folder))].reset_index(drop=True)
    if not (table["Split"] == "TRAIN").any():
        raise DataError(
            "FileList.csv must have a TRAIN video with two frames in VolumeTracings.csv, got none."
        )
    missing = sorted(set(table["FileName"]) - set(os.listdir(folder / "Videos")))
    if missing:
        raise DataNotFoundError(
            f"{folder / 'Videos' / missing[0]} is not here: {len(missing)} of the {len(table)} "
            "videos of FileList.csv are missing."
        )
    return table


def _check_rows(table: "pd.DataFrame") -> None:
    import pandas as pd

    if table["FileName"].duplicated().any():
        twice = table["FileName"][table["FileName"].duplicated()].iloc[0]
        raise DataError(f"`FileName` in FileList.csv must not repeat, got {twice} twice.")
    for name in ("EF", "NumberOfFrames"):
        table[name] = pd.to_numeric(table[name], errors="coerce")
        if table[name].isna().any():
            line = int(table[name].isna().to_numpy().argmax())
            raise DataError(f"`{name}` in FileList.csv must be a number, not so in row {line}.")


def _traced(folder: Path) -> set[str]:
    """Return the videos that have at least two traced frames."""
    import pandas as pd

    traces = pd.read_csv(folder / "VolumeTracings.csv", dtype={"FileName": str})
    if list(traces.columns) != _TRACED:
        raise DataError(
            f"The header of VolumeTracings.csv must be {','.join(_TRACED)}, "
            f"got {','.join(map(str, traces.columns))}."
        )
    frames = traces.groupby(traces["FileName"].str.removesuffix(".avi") + ".avi")["Frame"].nunique()
    return set(frames.index[frames >= 2])
