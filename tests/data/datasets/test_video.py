import pickle
import sys

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from regaug.data.datasets.video import load_echo, read_frames
from regaug.exceptions import ArgumentError, DataError, DataNotFoundError

av = pytest.importorskip("av", reason='needs the extra "regaug[video]"')

LIST_HEADER = "FileName,EF,ESV,EDV,FrameHeight,FrameWidth,FPS,NumberOfFrames,Split"
TRACE_HEADER = "FileName,X1,Y1,X2,Y2,Frame"
VIDEOS = {  # name: (frames, part, EF)
    "0XA": (80, "TRAIN", 55.5),
    "0XB": (70, "TRAIN", 60.0),
    "0XC": (20, "TRAIN", 40.0),
    "0XD": (66, "VAL", 33.0),
    "0XE": (30, "TEST", 70.25),
    "0XF": (5, "TRAIN", 10.0),  # traced once only
    "0XG": (5, "TEST", 11.0),  # not traced
}


def write_video(path, frames):
    """Write frames (n, height, width, 3) as Motion JPEG."""
    with av.open(str(path), "w", format="avi") as container:
        stream = container.add_stream("mjpeg", rate=50)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "yuvj444p"
        stream.options = {"qmin": "1", "qmax": "1"}
        for pixels in frames:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
            container.mux(stream.encode(frame.reformat(format="yuvj444p")))
        container.mux(stream.encode())


def gray(n, offset=0):
    """Return frames whose gray level is twice their number."""
    levels = (2 * np.arange(n) + offset).astype(np.uint8)
    return np.broadcast_to(levels[:, None, None, None], (n, 112, 112, 3))


def write_lists(folder, *, suffix=""):
    listed = [
        f"{name}{suffix},{ef},1,2,112,112,50,{n},{part}" for name, (n, part, ef) in VIDEOS.items()
    ]
    (folder / "FileList.csv").write_text("\n".join([LIST_HEADER, *listed]) + "\n")
    traces = [
        f"{name}.avi,1,2,3,4,{f}" for name in ["0XA", "0XB", "0XC", "0XD", "0XE"] for f in (1, 1, 4)
    ]
    traces += ["0XF.avi,1,2,3,4,3"] * 2
    (folder / "VolumeTracings.csv").write_text("\n".join([TRACE_HEADER, *traces]) + "\n")


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("videos")
    for name, (n, _, _) in VIDEOS.items():
        write_video(folder / f"{name}.avi", gray(n))
    return folder


@pytest.fixture
def echo(tmp_path, videos):
    (tmp_path / "Videos").mkdir()
    for path in videos.iterdir():
        (tmp_path / "Videos" / path.name).hardlink_to(path)
    write_lists(tmp_path)
    return tmp_path


def numbers(data, clip):
    """Return the number of every frame of a clip, read from its gray level."""
    mean, std = data.scale()
    return ((clip[0].mean((1, 2)) * std[0] + mean[0]) / 2).numpy()


def test_frames_are_read_in_order_and_as_red_green_blue(tmp_path):
    frames = np.zeros((3, 112, 112, 3), dtype=np.uint8)
    frames[0, ..., 0] = frames[1, ..., 1] = frames[2, ..., 2] = 200
    frames[2, :56] = 0
    write_video(tmp_path / "colors.avi", frames)
    read = np.stack(list(read_frames(tmp_path / "colors.avi")))
    assert (read.shape, read.dtype) == ((3, 112, 112, 3), np.uint8)
    np.testing.assert_allclose(read.astype(int), frames.astype(int), atol=6)


def test_the_parts_are_those_of_the_list(echo):
    data = load_echo(path=echo)
    split = data.split()
    assert len(data) == 5  # two videos are not traced twice
    assert split.train.y[:, 0].tolist() == [55.5, 60.0, 40.0]
    assert split.validation.y.tolist() == [[33.0]]
    assert split.test.y.tolist() == [[70.25]]
    assert split.test.rows.tolist() == [4]
    assert split.train.x.shape == (3, 3, 32, 112, 112)


def test_names_with_a_suffix_are_the_same_data(echo):
    plain = load_echo(path=echo).split()
    write_lists(echo, suffix=".avi")
    suffixed = load_echo(path=echo).split()
    assert len(suffixed.train) == 3
    torch.testing.assert_close(suffixed.test.x[0], plain.test.x[0])


def test_a_clip_takes_every_second_frame_from_the_start(echo):
    data = load_echo(path=echo)
    clip = data.split().validation.x[0]
    assert (clip.shape, clip.dtype) == ((3, 32, 112, 112), torch.float32)
    np.testing.assert_allclose(numbers(data, clip), np.arange(0, 64, 2), atol=0.6)


def test_a_training_clip_starts_where_its_draw_says(echo):
    data = load_echo(path=echo)
    starts = set()
    for seed in range(12):
        clips = data.split(seed).train.x
        start, _, _ = clips.draw(0)
        assert 0 <= start <= 80 - 63
        middle = clips[0][..., 56:57, 56:57]  # no crop reaches it
        np.testing.assert_allclose(numbers(data, middle), start + np.arange(0, 64, 2), atol=0.6)
        starts.add(start)
    assert len(starts) > 3


def test_every_start_and_every_crop_of_the_scripts_comes(echo):
    clips = load_echo(path=echo).split().train.x
    draws = []
    for epoch in range(600):
        clips.set_epoch(epoch)
        draws.append(clips.draw(1))
    starts, tops, lefts = (set(values) for values in zip(*draws, strict=True))
    assert starts == set(range(70 - 62))
    assert tops == lefts == set(range(24))


def test_a_short_video_is_padded_before_its_start_is_drawn(echo):
    clips = load_echo(path=echo).split().train.x
    starts = set()
    for epoch in range(50):
        clips.set_epoch(epoch)
        starts.add(clips.draw(2)[0])
    assert starts == {0, 1}  # 20 frames become 64


def test_a_crop_moves_the_frames_and_fills_up_with_zero(echo):
    clips = load_echo(path=echo, frames=2).split().train.x
    for epoch in range(4):
        clips.set_epoch(epoch)
        start, top, left = clips.draw(0)
        whole, cropped = clips.cut(0, start), clips[0]
        expected = torch.zeros_like(whole)
        for row in range(112):
            for column in range(112):
                y, x = row + top - 12, column + left - 12
                if 0 <= y < 112 and 0 <= x < 112:
                    expected[..., row, column] = whole[..., y, x]
        torch.testing.assert_close(cropped, expected, rtol=0, atol=0)


def test_a_training_clip_is_the_same_within_an_epoch_and_another_in_the_next(echo):
    clips, again = (load_echo(path=echo, frames=4).split(seed=5).train.x for _ in range(2))
    torch.testing.assert_close(clips[:], again[:], rtol=0, atol=0)
    clips.set_epoch(1)
    assert all(clips.draw(place) != again.draw(place) for place in range(3))
    assert not torch.equal(clips[0], again[0])
    again.set_epoch(1)
    torch.testing.assert_close(clips[:], again[:], rtol=0, atol=0)


def test_clips_to_choose_and_to_report_on_never_change(echo):
    split = load_echo(path=echo, frames=4).split()
    before = split.test.x[0]
    split.train.x.set_epoch(3)
    torch.testing.assert_close(split.test.x[0], before, rtol=0, atol=0)
    assert not hasattr(split.test.x, "set_epoch")


def test_workers_that_stay_alive_follow_the_epoch(echo):
    part = load_echo(path=echo, frames=2).split().train
    loader = DataLoader(
        part,
        batch_size=3,
        num_workers=1,
        persistent_workers=True,
        multiprocessing_context="spawn",
    )
    for epoch in range(2):
        part.x.set_epoch(epoch)
        ((x, _),) = list(loader)
        torch.testing.assert_close(x, part.x[:], rtol=0, atol=0)


def test_a_negative_epoch_is_refused(echo):
    clips = load_echo(path=echo).split().train.x
    with pytest.raises(ArgumentError, match="`epoch` must be at least 0, got -1"):
        clips.set_epoch(-1)


def test_frames_after_the_end_are_zero(echo):
    data = load_echo(path=echo)
    clip = data.split().test.x[0]  # 30 frames: 15 of them are taken
    np.testing.assert_allclose(numbers(data, clip[:, :15]), np.arange(0, 30, 2), atol=0.6)
    assert clip[:, 15:].eq(0).all()


def test_frames_and_period_can_be_chosen(echo):
    data = load_echo(path=echo, frames=4, period=5)
    validation = data.split().validation
    assert validation.x.shape == (1, 3, 4, 112, 112)
    np.testing.assert_allclose(numbers(data, validation.x[0]), [0, 5, 10, 15], atol=0.6)


def test_mean_and_deviation_are_those_of_all_training_pixels(echo):
    names = [name for name in VIDEOS if VIDEOS[name][1] == "TRAIN" and name != "0XF"]
    paths = [echo / "Videos" / f"{name}.avi" for name in names]
    pixels = np.concatenate([np.stack(list(read_frames(path))) for path in paths])
    mean, std = load_echo(path=echo).scale()
    np.testing.assert_allclose(mean, pixels.mean((0, 1, 2)), rtol=1e-6)
    np.testing.assert_allclose(std, pixels.std((0, 1, 2)), rtol=1e-6)


def test_the_scale_is_computed_once(echo):
    data = load_echo(path=echo)
    data.split()
    for name in ("0XA", "0XB", "0XC"):
        (echo / "Videos" / f"{name}.avi").unlink()
    assert len(data.split(seed=1).train) == 3


def test_videos_without_contrast_give_finite_clips(echo):
    for name in ("0XA", "0XB", "0XC"):
        path = echo / "Videos" / f"{name}.avi"
        path.unlink()
        write_video(path, np.full((3, 112, 112, 3), 100, dtype=np.uint8))
    assert load_echo(path=echo).split().train.x[:].isfinite().all()


def test_pickled_clips_are_equal(echo):
    x = load_echo(path=echo).split().train.x
    torch.testing.assert_close(pickle.loads(pickle.dumps(x))[1:], x[1:], rtol=0, atol=0)


def test_a_missing_package_says_which_extra(echo, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ImportError) as caught:
        load_echo(path=echo)
    assert str(caught.value) == 'The video data needs an extra: pip install "regaug[video]".'


@pytest.mark.parametrize("name", ["FileList.csv", "VolumeTracings.csv", "Videos/0XB.avi"])
def test_a_missing_file_is_named(echo, name):
    (echo / name).unlink()
    with pytest.raises(DataNotFoundError, match=name):
        load_echo(path=echo)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("FileList.csv", "NumberOfFrames", "Frames", "must have the columns FileName, EF"),
        ("FileList.csv", "VAL", "HOLD", "must be TRAIN, VAL or TEST, got 'HOLD'"),
        ("FileList.csv", "0XB", "0XA.avi", "must not repeat, got 0XA.avi"),
        ("FileList.csv", "60.0", "", "`EF` in FileList.csv must be a number, not so in row 1"),
        ("FileList.csv", "TRAIN", "TEST", "must have a TRAIN video"),
        ("VolumeTracings.csv", "X1,Y1,X2,Y2", "X1,X2,Y1,Y2", "must be FileName,X1,Y1,X2,Y2,Frame"),
    ],
)
def test_a_wrong_list_is_refused(echo, name, old, new, message):
    path = echo / name
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DataError, match=message):
        load_echo(path=echo)


def test_a_video_of_another_size_is_refused(echo):
    path = echo / "Videos/0XE.avi"
    path.unlink()
    write_video(path, np.zeros((2, 64, 96, 3), dtype=np.uint8))
    test = load_echo(path=echo).split().test
    with pytest.raises(
        DataError, match="0XE.avi must have frames of 112 x 112 pixels, got 64 x 96"
    ):
        test.x[0]


def test_a_file_that_is_no_video_is_refused(echo):
    path = echo / "Videos/0XE.avi"
    path.unlink()
    path.write_text("no video")
    test = load_echo(path=echo).split().test
    with pytest.raises(DataError, match="0XE.avi must be a video"):
        test.x[0]


def test_a_clip_without_frames_is_refused(echo):
    with pytest.raises(ArgumentError, match="`frames` must be at least 1, got 0"):
        load_echo(path=echo, frames=0)
