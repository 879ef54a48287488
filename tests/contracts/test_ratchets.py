"""The ratchets: counts and lists in `tests/ratchets.json` can only become smaller."""

import ast

from tests.ratchets import ROOT, breaches, circles, imported, long_functions, lowered, problems, prose_of_code

ALLOWED = {"signatures": ["a.map"], "clauses": {"io": 2}, "circles": ["a b"], "many parameters": []}


def nodes_of(text):
    return list(ast.walk(ast.parse(text)))


def test_a_clause_at_the_start_and_a_retired_word_count():
    text = '"""Whether it is behind the reader."""\n\nx = "#"  # of bytes\ny = 1  # noqa: E501\n'
    clauses, words = breaches(ROOT / "a.py", prose_of_code(text, nodes_of(text)))
    assert [place.partition(": ")[2] for place in clauses] == ["Whether it is behind the reader."]
    assert words == ["a.py:1: behind"]


def test_only_functions_with_positions_are_long():
    text = "def f(a, b, c, d, e, g, h): ...\ndef k(*, a, b, c, d, e, g, h): ...\n"
    assert list(long_functions("m", nodes_of(text))) == [("many parameters", "m.f")]
    assert not list(long_functions("m_native", nodes_of(text)))
    assert ("long functions", "m.f") in long_functions("m", nodes_of("def f():\n" + "    x = 1\n" * 80))


def test_a_late_import_closes_a_circle_and_a_typed_one_does_not(tmp_path):
    modules = {"p.a": tmp_path / "a.py", "p.b": tmp_path / "b.py"}
    late = imported("p.a", nodes_of("def f():\n    from p import b\n"), modules)
    typed = imported("p.b", nodes_of("if TYPE_CHECKING:\n    from p.a import f\n"), modules)
    assert (late, typed) == ({"p.b"}, set())
    assert circles({"p.a": late, "p.b": {"p.a"}}) == [["p.a", "p.b"]]
    assert circles({"p.a": late, "p.b": typed}) == []


def test_more_is_a_problem_and_less_must_be_written_down():
    same = {"clauses": {"io": 2}, "circles": ["a b"], "many parameters": ["a.map"]}
    assert problems(ALLOWED, same) == []
    assert problems(ALLOWED, same | {"clauses": {"io": 3, "cli": 1}}) == [
        "clauses: cli has 1, 0 are allowed. See `python -m tests.ratchets --list`.",
        "clauses: io has 3, 2 are allowed. See `python -m tests.ratchets --list`.",
    ]
    assert problems(ALLOWED, same | {"many parameters": ["b.f"]}) == ["many parameters: b.f is new."]
    less = {"clauses": {"io": 1}, "circles": [], "many parameters": []}
    assert problems(ALLOWED, less) == [
        "clauses: io has 1 of 2. Run `make budget`.",
        "circles: a b is gone. Run `make budget`.",
    ]
    assert problems(lowered(ALLOWED, less), less) == []


def test_lowering_never_raises():
    more = {"clauses": {"io": 5, "cli": 1}, "circles": ["a b", "c d"], "many parameters": ["b.f"]}
    assert lowered(ALLOWED, more) == ALLOWED
