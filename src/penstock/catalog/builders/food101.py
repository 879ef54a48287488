"""Food101: 101,000 photographs of food."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from penstock.catalog import features
from penstock.catalog.builder import Builder, Each, Examples
from penstock.catalog.download.manager import Checksum, DownloadManager
from penstock.catalog.info import DatasetInfo

_URL = "http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz"
_NAMES = (
    "apple_pie baby_back_ribs baklava beef_carpaccio beef_tartare beet_salad beignets bibimbap bread_pudding "
    "breakfast_burrito bruschetta caesar_salad cannoli caprese_salad carrot_cake ceviche cheesecake cheese_plate "
    "chicken_curry chicken_quesadilla chicken_wings chocolate_cake chocolate_mousse churros clam_chowder "
    "club_sandwich crab_cakes creme_brulee croque_madame cup_cakes deviled_eggs donuts dumplings edamame "
    "eggs_benedict escargots falafel filet_mignon fish_and_chips foie_gras french_fries french_onion_soup "
    "french_toast fried_calamari fried_rice frozen_yogurt garlic_bread gnocchi greek_salad grilled_cheese_sandwich "
    "grilled_salmon guacamole gyoza hamburger hot_and_sour_soup hot_dog huevos_rancheros hummus ice_cream lasagna "
    "lobster_bisque lobster_roll_sandwich macaroni_and_cheese macarons miso_soup mussels nachos omelette onion_rings "
    "oysters pad_thai paella pancakes panna_cotta peking_duck pho pizza pork_chop poutine prime_rib "
    "pulled_pork_sandwich ramen ravioli red_velvet_cake risotto samosa sashimi scallops seaweed_salad "
    "shrimp_and_grits spaghetti_bolognese spaghetti_carbonara spring_rolls steak strawberry_shortcake sushi tacos "
    "takoyaki tiramisu tuna_tartare waffles"
)
_LISTS = {"train": "train.json", "validation": "test.json"}


class Food101(Builder):
    """Photographs of 101 dishes: 750 of each for training, with some wrong labels, and 250 for validation."""

    VERSION = "2.0.0"
    EXAMPLES: ClassVar[Mapping[str, int]] = {"train": 75_750, "validation": 25_250}
    URL: ClassVar[str] = _URL
    CHECKSUMS: ClassVar[Mapping[str, Checksum]] = {
        _URL: Checksum(4996278331, "d97d15e438b7f4498f96086a4f7e2fa42a32f2712e87d3295441b2b6314053a4")
    }

    def _info(self) -> DatasetInfo:
        return DatasetInfo(
            features=features.FeaturesDict(
                {"image": features.Image(), "label": features.ClassLabel(names=_NAMES.split())}
            ),
            description=(
                "Photographs of 101 dishes, 1,000 of each, of 512 pixels at most. Among those to train some have "
                "glaring colours or a wrong label."
            ),
            supervised_keys=("image", "label"),
            homepage="https://data.vision.ee.ethz.ch/cvl/datasets_extra/food-101/",
            citation=(
                "@inproceedings{bossard14,\n"
                "  title = {Food-101 -- Mining Discriminative Components with Random Forests},\n"
                "  author = {Bossard, Lukas and Guillaumin, Matthieu and Van Gool, Luc},\n"
                "  booktitle = {European Conference on Computer Vision},\n  year = {2014}\n}"
            ),
        )

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        folder = dl_manager.download_and_extract(self.URL) / "food-101"
        return {
            split: Each(_pictures(folder / "meta" / name), partial(_dish, folder / "images"))
            for split, name in _LISTS.items()
        }


def _pictures(path: Path) -> list[tuple[str, str]]:
    """Return the label and the name of each image in a list."""
    listed = json.loads(path.read_text(encoding="utf-8"))
    return [(label, name) for label, names in listed.items() for name in names]


def _dish(folder: Path, item: tuple[str, str]) -> tuple[str, dict[str, Any]]:
    label, name = item
    return name, {"image": folder / f"{name}.jpg", "label": label}
