"""OxfordFlowers102: 8,189 photographs of flowers of 102 kinds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from penstock.catalog import features
from penstock.catalog.builder import Builder, Each, Examples
from penstock.catalog.builders.array_files import read_mat
from penstock.catalog.download.manager import Checksum, DownloadManager
from penstock.catalog.info import DatasetInfo
from penstock.errors import DataLossError

_URL = "https://www.robots.ox.ac.uk/~vgg/data/flowers/102/"
_NAMES = (
    "pink primrose, hard-leaved pocket orchid, canterbury bells, sweet pea, english marigold, tiger lily, "
    "moon orchid, bird of paradise, monkshood, globe thistle, snapdragon, colt's foot, king protea, spear thistle, "
    "yellow iris, globe-flower, purple coneflower, peruvian lily, balloon flower, giant white arum lily, fire lily, "
    "pincushion flower, fritillary, red ginger, grape hyacinth, corn poppy, prince of wales feathers, "
    "stemless gentian, artichoke, sweet william, carnation, garden phlox, love in the mist, mexican aster, "
    "alpine sea holly, ruby-lipped cattleya, cape flower, great masterwort, siam tulip, lenten rose, barbeton daisy, "
    "daffodil, sword lily, poinsettia, bolero deep blue, wallflower, marigold, buttercup, oxeye daisy, "
    "common dandelion, petunia, wild pansy, primula, sunflower, pelargonium, bishop of llandaff, gaura, geranium, "
    "orange dahlia, pink-yellow dahlia?, cautleya spicata, japanese anemone, black-eyed susan, silverbush, "
    "californian poppy, osteospermum, spring crocus, bearded iris, windflower, tree poppy, gazania, azalea, "
    "water lily, rose, thorn apple, morning glory, passion flower, lotus, toad lily, anthurium, frangipani, "
    "clematis, hibiscus, columbine, desert-rose, tree mallow, magnolia, cyclamen, watercress, canna lily, "
    "hippeastrum, bee balm, ball moss, foxglove, bougainvillea, camellia, mallow, mexican petunia, bromelia, "
    "blanket flower, trumpet creeper, blackberry lily"
)
# The arrays with the numbers of the images of each split.
_SPLITS = {"train": "trnid", "test": "tstid", "validation": "valid"}


class OxfordFlowers102(Builder):
    """Photographs of flowers: ten of each kind for training and ten for validation, and 6,149 for test.

    The splits are in MATLAB files, which scipy reads: `pip install 'penstock[mat]'`.
    """

    VERSION = "2.1.1"
    EXAMPLES: ClassVar[Mapping[str, int]] = {"train": 1_020, "test": 6_149, "validation": 1_020}
    URL: ClassVar[str] = _URL
    CHECKSUMS: ClassVar[Mapping[str, Checksum]] = {
        f"{_URL}102flowers.tgz": Checksum(
            344862509, "2d01ecc807db462958cfe3d92f57a8c252b4abd240eb955770201e45f783b246"
        ),
        f"{_URL}imagelabels.mat": Checksum(502, "4903e94206bac23bf772aadf06451916df56b58fc483a62db32a97b82656651d"),
        f"{_URL}setid.mat": Checksum(14989, "46b8678f91fd95d3c8f4feab80d271a6c834a1dd896fe29fd3e6ad9ce5c8dccd"),
    }

    def _info(self) -> DatasetInfo:
        return DatasetInfo(
            features=features.FeaturesDict(
                {
                    "file_name": features.Text(),
                    "image": features.Image(),
                    "label": features.ClassLabel(names=_NAMES.split(", ")),
                }
            ),
            description=(
                "Photographs of flowers of 102 kinds that are common in the United Kingdom, 40 to 258 of each. There "
                "are more to test than to train."
            ),
            supervised_keys=("image", "label"),
            homepage=_URL,
            citation=(
                "@InProceedings{Nilsback08,\n"
                '   author = "Nilsback, M-E. and Zisserman, A.",\n'
                '   title = "Automated Flower Classification over a Large Number of Classes",\n'
                '   booktitle = "Proceedings of the Indian Conference on Computer Vision, Graphics and Image '
                'Processing",\n'
                '   year = "2008",\n   month = "Dec"\n}'
            ),
        )

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        names = ("102flowers.tgz", "imagelabels.mat", "setid.mat")
        archive, labels, splits = dl_manager.download([self.URL + name for name in names])
        (kinds,) = (found.reshape(-1).tolist() for found in read_mat(labels, "labels"))
        numbers = [found.reshape(-1).tolist() for found in read_mat(splits, *_SPLITS.values())]
        if not all(1 <= number <= len(kinds) for part in numbers for number in part):
            message = f"a split names an image that is none of 1 to {len(kinds)}."
            raise DataLossError(message, hint="Delete the file, and it is downloaded again.", file=str(splits))
        folder = dl_manager.extract(archive) / "jpg"
        return {
            split: Each([(number, kinds[number - 1] - 1) for number in part], partial(_flower, folder))
            for split, part in zip(_SPLITS, numbers, strict=True)
        }


def _flower(folder: Path, item: tuple[int, int]) -> tuple[str, dict[str, Any]]:
    number, label = item
    name = f"image_{number:05d}.jpg"
    return name, {"file_name": name, "image": folder / name, "label": label}
