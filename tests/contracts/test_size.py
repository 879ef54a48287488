"""The size report: `tests/budget.json` can only fall, and a rise names its reason."""

from tests.size_report import allowed, code_lines, lowered, problems

BUDGET = {"lines": {"io": 100, "image": 50}, "rises": [{"package": "io", "lines": 10, "reason": "read Zstandard"}]}


def test_blank_lines_comments_and_docstrings_are_no_code():
    text = '"""One\n\ntwo."""\n\n\nclass A:  # why\n    """Three."""\n\n    # four\n    x = """a\n    b"""\n'
    assert code_lines(text) == 3


def test_a_rise_adds_to_the_budget():
    assert allowed(BUDGET) == {"io": 110, "image": 50}


def test_a_package_above_or_below_its_budget_is_a_problem():
    assert problems(BUDGET, {"io": 110, "image": 50}) == []
    above, new = problems(BUDGET, {"io": 111, "image": 50, "new": 3})
    assert above.startswith("io has 1 code lines more")
    assert new.startswith("new has 3 code lines more")
    (below,) = problems(BUDGET, {"io": 110, "image": 40})
    assert "make budget" in below


def test_a_rise_needs_a_reason():
    budget = {"lines": {"io": 100}, "rises": [{"package": "io", "lines": 10, "reason": ""}]}
    assert problems(budget, {"io": 110}) == ["A rise of io has no reason."]


def test_lowering_never_raises():
    budget = lowered(BUDGET, {"io": 95, "image": 60})
    assert allowed(budget) == {"io": 95, "image": 50}


def test_a_package_that_is_gone_has_a_budget_of_nothing():
    assert allowed(lowered(BUDGET, {"io": 110}))["image"] == 0
