"""What image functions declare of themselves, and that nobody else knows them by name."""

import ast
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.image import public
from penstock.profiler.lint.natures import decodes, randomness, work
from penstock.rewrite.rules.parallelise_maps import parallelise_maps
from penstock.trace.lift import FAMILIES, Nature, draws, families, nature_of, of_nature
from penstock.trace.purity import why_impure

SRC = Path(ps.__file__).parent
NAMES = public.__all__
DECODERS = {"decode_and_crop_jpeg", *(name for name in NAMES if name.startswith("decode_"))}
DRAWS = {"rand_augment", "trivial_augment", *(name for name in NAMES if name.startswith("random_"))}
CHEAP = {
    "cast",
    "central_crop",
    "convert_image_dtype",
    "crop_to_bounding_box",
    "flip_left_right",
    "invert",
    "pad",
    "rot90",
}


def of(nature, name):
    return {other for other in NAMES if getattr(nature(getattr(ps.image, other)), name)}


def test_what_functions_declare():
    assert of(nature_of, "decodes") == DECODERS
    assert of(nature_of, "work") >= DECODERS | {"resize", "encode_jpeg", "adjust_hue", "rotate", "rand_augment"}
    assert of(nature_of, "work").isdisjoint(CHEAP)
    assert {name for name in NAMES if draws(getattr(ps.image, name))} == DRAWS


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("stateless_random", "random_"))])
def test_a_random_function_costs_what_the_one_it_becomes_costs(name):
    plain = name.removeprefix("stateless_").removeprefix("random_")
    same = {"hue": "adjust_hue", "saturation": "adjust_saturation", "jpeg_quality": "adjust_jpeg_quality"}
    known = getattr(ps.image, same.get(plain, {"rotate": "rotate", "resized_crop": "resize"}.get(plain, "invert")))
    assert nature_of(getattr(ps.image, name)) == nature_of(known)


@pytest.mark.parametrize("name", sorted(of(nature_of, "work")))
def test_rules_and_lint_go_by_it(name):
    function = getattr(ps.image, name)

    def mapped(value):
        return function(value)

    assert work(mapped) == ("works on images", "function")
    assert (decodes(mapped) is not None) == (name in DECODERS)
    assert (randomness(mapped) is not None) == (name in DRAWS)
    moved = parallelise_maps.apply(ps.Dataset.range(2).map(mapped)._plan)
    assert (moved is None) == (why_impure(mapped) is not None)
    assert moved is None or moved.num_parallel_calls == ps.AUTOTUNE


def test_a_function_of_somebody_else_may_declare_one():
    @of_nature(Nature("works on sound"))
    def stretch(sound):
        return sound

    def mapped(value):
        return stretch(value)

    assert nature_of(stretch) == Nature("works on sound")
    assert nature_of(mapped) == nature_of(np.sum) == nature_of(None) == Nature()
    assert parallelise_maps.apply(ps.Dataset.range(2).map(mapped)._plan) is not None


def test_primitives_of_images_are_a_family():
    from penstock.block.structure import flatten
    from penstock.trace.traced import traced

    leaves, structure = flatten(ps.TensorSpec((4, 4, 3), np.uint8))
    graph = traced(lambda x: ps.image.flip_up_down(x) + 1, structure, leaves).graph
    primitives = [equation.primitive for equation in graph.equations]
    assert families(primitives) == [FAMILIES["image"]]
    assert families(primitives[1:]) == []
    assert FAMILIES["image"].fused(graph, copied=()).describe() == graph.describe()


@pytest.mark.parametrize("package", ["plan", "rewrite", "physical", "profiler", "runtime", "trace"])
def test_no_rule_check_or_stage_knows_an_operation_by_name(package):
    known = {"penstock.image", *NAMES} - {
        "cast",
        "invert",
        "normalize",
        "pad",
        "resize",
        "rotate",
        "transform",
        "transpose",
    }
    for file in (SRC / package).rglob("*.py"):
        texts = [node.value for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)]
        found = [text for text in texts if isinstance(text, str) and (text in known or text.startswith("image."))]
        assert found == [], file
