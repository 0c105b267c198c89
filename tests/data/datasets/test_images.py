import gzip
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from regaug.data.datasets.files import find
from regaug.data.datasets.povertymap import load_povertymap
from regaug.data.datasets.rcf_mnist import color, load_rcf_mnist, read_images
from regaug.data.lazy import Lazy
from regaug.exceptions import ArgumentError, ArgumentTypeError, DataError, DataNotFoundError

DEBIAN = Path("/usr/share/datasets/fashion-mnist")


class Counting(Lazy):
    def _read(self, place):
        return torch.full((2,), float(place))


# Inputs that are read when asked for


@pytest.mark.parametrize(
    "index",
    [
        slice(1, 4),
        slice(None, None, -2),
        [0, 3, -1],
        (2, 1),
        np.array([4, 0]),
        torch.tensor([3]),
        [],
        np.array([True, False, True, False, False]),
        torch.tensor([False, True, False, False, True]),
    ],
    ids=repr,
)
def test_several_indices_give_the_rows_numpy_would_give(index):
    dense = np.arange(5.0)[:, None].repeat(2, axis=1)
    places = index if isinstance(index, slice) else np.asarray(index)
    if not isinstance(index, slice) and places.dtype != bool:
        places = places.astype(int)
    np.testing.assert_array_equal(Counting(5, (2,))[index].numpy(), dense[places])


@pytest.mark.parametrize("index", [2, -3, np.int64(2), torch.tensor(2)])
def test_one_index_gives_one_sample(index):
    torch.testing.assert_close(Counting(5, (2,))[index], torch.full((2,), 2.0))


def test_iteration_ends_after_the_last_sample():
    assert len(list(Counting(5, (2,)))) == 5


@pytest.mark.parametrize("index", [5, -6, [0, 5], [[1]], [0.5], [True, False]])
def test_an_index_that_is_not_there_is_refused(index):
    with pytest.raises(IndexError, match="index"):
        Counting(5, (2,))[index]


def test_a_path_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(DataNotFoundError, match="`path` must be an existing .*nowhere"):
        find(tmp_path / "nowhere", "airfoil")


# RCF-MNIST, on images made here


@pytest.fixture(scope="module")
def idx(tmp_path_factory):
    images = np.random.default_rng(0).integers(0, 256, (60, 28, 28), dtype=np.uint8)
    folder = tmp_path_factory.mktemp("fashion")
    write_idx(folder, images)
    return folder


def write_idx(folder, images, *, magic=2051):
    path = folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(struct.pack(">4I", magic, *images.shape) + images.tobytes()))
    return path


def test_the_parts_are_two_thirds_one_sixth_one_sixth_and_share_nothing(idx):
    split = load_rcf_mnist(path=idx).split(seed=3)
    rows = [part.rows for part in (split.train, split.validation, split.test)]
    assert [len(r) for r in rows] == [40, 10, 10]
    np.testing.assert_array_equal(np.sort(np.concatenate(rows)), np.arange(60))


def test_shapes_and_dtypes(idx):
    train = load_rcf_mnist(path=idx / "train-images-idx3-ubyte.gz").split().train
    assert train.x.shape == (40, 3, 28, 28)
    assert train.y.shape == (40, 1)
    x, y = train[0]
    assert (x.shape, x.dtype, y.shape, y.dtype) == ((3, 28, 28), torch.float32, (1,), torch.float32)


def test_a_sample_is_always_the_same_and_another_seed_gives_another_split(idx):
    first, again = (load_rcf_mnist(path=idx).split(seed=1).train for _ in range(2))
    torch.testing.assert_close(first.x[:], again.x[:], rtol=0, atol=0)
    assert not np.array_equal(first.rows, load_rcf_mnist(path=idx).split(seed=2).train.rows)


def test_the_angle_of_an_image_is_the_same_in_every_split(idx):
    def targets(data, seed):
        split = data.split(seed)
        parts = (split.train, split.validation, split.test)
        return {int(r): float(y) for p in parts for r, y in zip(p.rows, p.y, strict=True)}

    data = load_rcf_mnist(path=idx)
    assert targets(data, 0) == targets(data, 1)
    assert targets(data, 0) != targets(load_rcf_mnist(path=idx, seed=1), 0)


def test_the_two_protocols_are_the_same(idx):
    data = load_rcf_mnist(path=idx)
    tuned, paper = data.split(protocol="tuned").test, data.split(protocol="paper").test
    torch.testing.assert_close(tuned.x[:], paper.x[:], rtol=0, atol=0)


def test_exactly_80_percent_of_the_colors_follow_the_rule(idx):
    split = load_rcf_mnist(path=idx).split(seed=4)
    for part, n_follow, n_against in (
        (split.train, 32, 8),
        (split.test, 2, 8),
        (split.more["test-unshifted"], 8, 2),
    ):
        y = part.y[:, 0].double().numpy()
        assert np.isclose(part.x.colors, y, atol=1e-6).sum() == n_follow
        assert np.isclose(part.x.colors, 1 - y, atol=1e-6).sum() == n_against


def test_a_sample_is_the_rotated_colored_image_worked_out_slowly(idx):
    train = load_rcf_mnist(path=idx).split(seed=5).train
    images = read_images(str(idx / "train-images-idx3-ubyte.gz"))
    for i in (0, 7, 39):
        angle = 360 * float(train.x.turns[i])
        r = float(train.x.colors[i])
        rgb = Image.fromarray(images[train.rows[i]]).convert("RGB").rotate(angle)
        expected = np.asarray(rgb, dtype=np.float64).transpose(2, 0, 1) / 255
        for row in range(28):
            for column in range(28):
                if expected[0, row, column] > 5 / 255:
                    expected[:, row, column] *= (r, 0, 1 - r)
        np.testing.assert_allclose(train.x[i].numpy(), (expected - 0.5) * 2, atol=1e-6)
        assert float(train.y[i]) == pytest.approx(angle / 360)


def test_rotation_is_counter_clockwise(tmp_path):
    # The only bright pixel is in the middle of the upper edge; after about 90 degrees it is left.
    image = np.zeros((600, 28, 28), dtype=np.uint8)
    image[:, 4, 13:15] = 255
    write_idx(tmp_path, image)
    part = load_rcf_mnist(path=tmp_path).split().train
    i = int((part.y[:, 0] - 0.25).abs().argmin())
    bright = (part.x[i] > -1).any(0).nonzero()
    assert bright[:, 1].max() < 8


def test_dark_pixels_stay_gray():
    image = color(np.array([[5, 6]], dtype=np.uint8), 1.0) / 2 + 0.5
    torch.testing.assert_close(image[:, 0, 0], torch.full((3,), 5 / 255), atol=1e-6, rtol=0)
    torch.testing.assert_close(image[:, 0, 1], torch.tensor([6 / 255, 0, 0]), atol=1e-6, rtol=0)


def test_pickled_inputs_are_small_and_equal(idx):
    x = load_rcf_mnist(path=idx).split().test.x
    content = pickle.dumps(x)
    assert len(content) < 2000
    torch.testing.assert_close(pickle.loads(content)[:], x[:], rtol=0, atol=0)


def test_a_spawned_worker_reads_the_same_samples(idx):
    part = load_rcf_mnist(path=idx).split().validation
    loader = DataLoader(part, batch_size=10, num_workers=1, multiprocessing_context="spawn")
    ((x, y),) = list(loader)
    torch.testing.assert_close(x, part.x[:], rtol=0, atol=0)
    torch.testing.assert_close(y, part.y, rtol=0, atol=0)


def test_a_file_of_labels_is_refused(tmp_path):
    write_idx(tmp_path, np.zeros((9, 28, 28), dtype=np.uint8), magic=2049)
    with pytest.raises(DataError, match=r"magic number 2051.*\(2049, 9, 28, 28\)"):
        load_rcf_mnist(path=tmp_path)


def test_a_file_that_is_cut_is_refused(tmp_path):
    path = write_idx(tmp_path, np.zeros((9, 28, 28), dtype=np.uint8))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="whole gzip file"):
        load_rcf_mnist(path=tmp_path)


def test_wrong_arguments_of_a_split_are_named(idx):
    data = load_rcf_mnist(path=idx)
    with pytest.raises(ArgumentError, match="`protocol` must be one of 'tuned', 'paper'"):
        data.split(protocol="best")
    with pytest.raises(ArgumentTypeError, match="`seed`"):
        data.split(seed=0.5)


# RCF-MNIST, on the real images


@pytest.fixture(scope="module")
def real_split():
    if not DEBIAN.is_dir():
        pytest.skip("needs Fashion-MNIST: apt-get install dataset-fashion-mnist")
    return load_rcf_mnist(path=DEBIAN).split(seed=0)


def test_the_real_parts_have_the_sizes_of_the_paper(real_split):
    parts = (real_split.train, real_split.validation, real_split.test)
    assert [len(p) for p in parts] == [40_000, 10_000, 10_000]
    assert [p.x.shape for p in parts] == [(len(p), 3, 28, 28) for p in parts]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("train", 0.6), ("validation", 0.0), ("test", -0.6), ("test-unshifted", 0.6)],
)
def test_color_and_angle_of_the_real_parts_correlate_as_they_should(real_split, name, expected):
    part = real_split.more[name] if name in real_split.more else getattr(real_split, name)
    y = part.y[:, 0].numpy()
    assert np.corrcoef(part.x.colors, y)[0, 1] == pytest.approx(expected, abs=0.03)
    n = 4000
    rgb = part.x[:n] / 2 + 0.5
    red, blue = ((rgb[:, c] * (rgb[:, 1] == 0)).sum((1, 2)) for c in (0, 2))
    seen = (red / (red + blue)).numpy()
    np.testing.assert_allclose(seen, part.x.colors[:n], atol=1e-4)
    assert np.corrcoef(seen, y[:n])[0, 1] == pytest.approx(expected, abs=0.03)


# PovertyMap

VALIDATION = {
    "A": "benin burkina_faso guinea sierra_leone tanzania",
    "B": "cameroon ghana malawi zimbabwe",
    "C": "democratic_republic_of_congo mozambique nigeria togo uganda",
    "D": "kenya lesotho senegal zambia",
    "E": "angola cote_d_ivoire ethiopia mali rwanda",
}
TEST = {fold: VALIDATION[before] for fold, before in zip("ABCDE", "EABCD", strict=True)}
N = 4000


@pytest.fixture(scope="module")
def poverty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wilds") / "poverty_v1.1"
    (folder / "images").mkdir(parents=True)
    (folder / "RELEASE_v1.1.txt").touch()
    rng = np.random.default_rng(0)
    countries = rng.choice(" ".join(VALIDATION.values()).split(), N)
    lines = ["lat,lon,wealthpooled,country,year,urban,nl_mean,nl_center,households"]
    for i, country in enumerate(countries):
        lines.append(f"0,0,{i / N - 0.5:.6f},{country},2010,{i % 3 == 0},0,0,1")
        (folder / f"images/landsat_poverty_img_{i}.npz").touch()
    (folder / "dhs_metadata.csv").write_text("\n".join(lines) + "\n")
    return folder, countries


def write_image(folder, i, **arrays):
    if not arrays:
        arrays = {"x": np.full((8, 224, 224), float(i), dtype=np.float32)}
    np.savez_compressed(folder / f"images/landsat_poverty_img_{i}.npz", **arrays)


@pytest.mark.parametrize("fold", list("ABCDE"))
def test_the_split_is_that_of_wilds(poverty, fold):
    folder, countries = poverty
    array = np.zeros(N, dtype=int)
    array[np.isin(countries, VALIDATION[fold].split())] = 3
    array[np.isin(countries, TEST[fold].split())] = 4
    inside = np.flatnonzero(array == 0)
    np.random.default_rng(ord(fold) + 541433).shuffle(inside)
    array[inside[:1000]] = 1
    array[inside[1000:2000]] = 2
    split = load_povertymap(fold, path=folder).split()
    parts = [split.train, split.more["id-validation"], split.more["id-test"]]
    for number, part in enumerate([*parts, split.validation, split.test]):
        np.testing.assert_array_equal(part.rows, np.flatnonzero(array == number))
        np.testing.assert_allclose(part.y[:, 0], part.rows / N - 0.5, atol=1e-6)
        np.testing.assert_array_equal(part.groups, np.where(part.rows % 3, "rural", "urban"))


def test_an_image_is_read_when_it_is_asked_for(poverty):
    folder, _ = poverty
    test = load_povertymap("A", path=folder).split().test
    for row in test.rows[:2]:
        write_image(folder, row)
    assert test.x.shape == (len(test), 8, 224, 224)
    x = pickle.loads(pickle.dumps(test.x))[:2]
    assert x.dtype == torch.float32
    np.testing.assert_array_equal(x[:, 7, 0, 0], test.rows[:2])
    with pytest.raises(DataError, match=rf"img_{test.rows[2]}.npz must be an .npz file"):
        test.x[2]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((224, 224, 8), dtype=np.float32)}, r"\(8, 224, 224\), got \(224, 224, 8\)"),
        ({"image": np.zeros(2)}, "with an array 'x'"),
        ({"x": np.array([None])}, "with an array 'x'"),
    ],
    ids=["channels-last", "other-key", "pickled"],
)
def test_a_wrong_image_is_refused(poverty, arrays, message):
    folder, _ = poverty
    validation = load_povertymap("B", path=folder).split().validation
    write_image(folder, validation.rows[0], **arrays)
    with pytest.raises(DataError, match=message):
        validation.x[0]


@pytest.fixture
def small(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "RELEASE_v1.1.txt").touch()
    (tmp_path / "dhs_metadata.csv").write_text(
        "wealthpooled,country,urban\n0.5,mali,1\n-1,togo,0\n"
    )
    for i in range(2):
        (tmp_path / f"images/landsat_poverty_img_{i}.npz").touch()
    return tmp_path


def test_zero_and_one_say_urban_too(small):
    data = load_povertymap(path=small)
    assert data.groups.tolist() == ["urban", "rural"]


def test_too_few_rows_to_train_on_are_refused(small):
    with pytest.raises(DataError, match="more than 2000 rows .* fold A, got 1"):
        load_povertymap(path=small).split()


@pytest.mark.parametrize("name", ["RELEASE_v1.1.txt", "dhs_metadata.csv"])
def test_a_missing_file_is_named(small, name):
    (small / name).unlink()
    with pytest.raises(DataNotFoundError, match=name):
        load_povertymap(path=small)


def test_a_missing_image_is_named(small):
    (small / "images/landsat_poverty_img_1.npz").unlink()
    with pytest.raises(DataNotFoundError, match="img_1.npz is not here.* 2 rows, and 1"):
        load_povertymap(path=small)


def test_more_images_than_rows_are_refused(small):
    (small / "images/landsat_poverty_img_2.npz").touch()
    with pytest.raises(DataError, match="got 2 rows and 3 images"):
        load_povertymap(path=small)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wealth,country,urban\n1,mali,1\n", "must have the columns wealthpooled"),
        ("wealthpooled,country,urban\n1,france,1\n", "got 'france'"),
        ("wealthpooled,country,urban\n1,mali,1\n,mali,1\n", "`wealthpooled` .* in row 1"),
        ("wealthpooled,country,urban\n1,mali,perhaps\n", "`urban` .* 'perhaps' in row 0"),
    ],
)
def test_wrong_metadata_are_refused(small, text, message):
    (small / "dhs_metadata.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        load_povertymap(path=small)


def test_an_unknown_fold_is_refused(small):
    with pytest.raises(ArgumentError, match="`fold` must be one of 'A', 'B', 'C', 'D', 'E'"):
        load_povertymap("F", path=small)
