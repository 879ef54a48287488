"""What public functions return and raise has a public name."""

import pytest

import penstock as ps


def test_formats_return_public_types(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    assert isinstance(ps.formats.recognise(tmp_path / "a.txt"), ps.formats.Found)
    assert isinstance(ps.formats.open_dataset(tmp_path / "a.txt"), ps.formats.Opened)


def test_a_service_is_a_public_type():
    with ps.service.start(workers=1) as service:
        assert isinstance(service, ps.service.Handle)
        assert {name for name in dir(ps.service.Handle) if name[0] != "_"} >= {"stop"}
    assert hasattr(ps.service.RayHandle, "stop")


def test_errors_have_public_types():
    options = ps.Options()
    ds = ps.Dataset.range(3).with_options(options)
    with pytest.raises(ps.errors.FrozenError):
        options.seed = 1
    state = iter(ds).state_dict()
    with pytest.raises(ps.errors.AnotherPlanError):
        iter(ds.batch(2)).load_state_dict(state)
