"""A training script made sparse step by step, as users of sparsity APIs write it."""

import textwrap

import numpy as np
import pytest
import sparse_model
from sparse_model import X, Y, step

import lacuna as lc
from lacuna import sparse


def make_model():
    return sparse_model.make_model("encoder.fc1", "encoder.fc2", "head")


def sparse_run(algorithm, steps=4, model=None, **options):
    return sparse_model.sparse_run(algorithm, steps, model or make_model(), **options)


def test_static_sparsity_on_every_parameter():
    sparsity = sparse.Static(sparsity=0.5)
    model, optimizer = sparse_run(sparsity)
    assert sparsity.num_sparse_params == 3
    assert sorted(sparsity.sparse_params) == [
        "encoder.fc1.weight",
        "encoder.fc2.weight",
        "head.weight",
    ]
    for name, parameter in sparsity.sparse_params.items():
        assert parameter is model[name] and parameter.density == 0.5
        assert not parameter.to_numpy()[~parameter.mask].any()
    assert model["head.bias"].layout == "dense"
    assert list(sparsity.get_sparse_params(model)) == list(sparsity.get_sparse_params(optimizer))


def test_both_ways_to_apply():
    model = make_model()
    sparsity = sparse.Static(sparsity=0.5, init_method="topk")
    sparsity.apply(model)
    optimizer = lc.SGD(model.parameters(), lr=0.1)
    sparsity.apply(optimizer)
    step(model, optimizer)
    assert sparsity.step == 1
    with pytest.raises(lc.StateError, match="already"):
        sparsity.apply(model)
    with pytest.raises(lc.StateError, match="already"):
        model.apply(sparse.Static(0.1))
    with pytest.raises(TypeError, match="model or an optimizer"):
        sparsity.apply([])


def test_parameters_that_require_dense_stay_dense():
    model = make_model()
    model["encoder.fc1.weight"].requires_dense = True
    model, _ = sparse_run(sparse.Static(0.5), model=model)
    assert model["encoder.fc1.weight"].layout == "dense"
    assert model["encoder.fc2.weight"].density == 0.5
    model = make_model()
    model.requires_dense = True
    with pytest.raises(lc.ConfigError, match="dense"):
        model.apply(sparse.Static(0.5))


def test_optimizer_states_that_require_dense_stay_dense():
    model, optimizer = sparse_run(sparse.Static(0.5, layout="masked"), steps=1)
    name = "encoder.fc1.weight"
    off = ~model[name].mask
    assert not optimizer.requires_dense(name, "exp_avg")
    assert not optimizer.state(name)["exp_avg"][off].any()
    optimizer.set_requires_dense(name, "exp_avg")
    optimizer.state(name)["exp_avg"][off] = 0.5
    optimizer.state(name)["exp_avg_sq"][off] = 0.5
    step(model, optimizer)
    assert (optimizer.state(name)["exp_avg"][off] != 0).all()
    assert not optimizer.state(name)["exp_avg_sq"][off].any()
    assert not model[name].to_numpy()[off].any()
    compressed, optimizer = sparse_run(sparse.Static(0.5, layout="csr"), steps=1)
    with pytest.raises(lc.StateError, match='layout="masked"'):
        optimizer.set_requires_dense(name, "exp_avg")


def test_a_group_of_algorithms_by_glob():
    group = sparse.Group(
        {
            "*.fc1.weight": sparse.Static(sparsity=0.5),
            "encoder.*.weight": sparse.SET(sparsity=0.75, update={"freq": 2}, drop_fraction=0.5),
        }
    )
    group.add(["head.weight"], sparse.GMP(sparsity=sparse.Linear(init=0.0, slope=0.1)))
    model, _ = sparse_run(group)
    assert model["encoder.fc1.weight"].density == 0.5
    assert model["encoder.fc2.weight"].density == 0.25
    assert model["head.weight"].density == pytest.approx(0.6, abs=0.02)
    assert [a.type for a in group.algorithms] == ["static", "set", "gmp"]
    assert [a.num_sparse_params for a in group.algorithms] == [1, 1, 1]
    with pytest.raises(lc.StateError, match="extend"):
        sparse.Group({"*": sparse.Group()})
    other = sparse.Group({"encoder.*": sparse.Static(0.5)})
    more = sparse.Group()
    more.extend(other)
    assert len(more.algorithms) == 1 and len(other.algorithms) == 0


def test_groups_take_filters_of_python():
    seen = []

    def chooses(name, parameter):
        seen.append((name, parameter.shape))
        return name.endswith("fc2.weight")

    model, _ = sparse_run(sparse.Group([(chooses, sparse.Static(0.5))]), steps=1)
    assert model["encoder.fc2.weight"].density == 0.5 and model["head.weight"].density == 1
    assert ("head.weight", (4, 16)) in seen
    model, _ = sparse_run(sparse.Static(0.5, param_filter=chooses), steps=1)
    assert model["encoder.fc2.weight"].density == 0.5 and model["head.weight"].density == 1


def test_init_methods_may_be_functions():
    def lower_triangle(weight, sparsity):
        assert sparsity == pytest.approx(0.5)
        return np.tril(np.ones(weight.shape, bool))

    model, _ = sparse_run(sparse.Static(0.5, init_method=lower_triangle), steps=1)
    np.testing.assert_array_equal(model["head.weight"].mask, np.tril(np.ones((4, 16), bool)))
    with pytest.raises(lc.ShapeError, match="init_method.*encoder.fc1.weight"):
        make_model().apply(sparse.Static(0.5, init_method=lambda w, s: np.ones((2, 2), bool)))


def test_an_algorithm_of_its_own_with_update():
    class Threshold(sparse.SparsityAlgorithm):
        """Prunes for good what falls below a hundredth."""

        def __init__(self, threshold, **keywords):
            super().__init__(**keywords)
            self.threshold = threshold

        def update(self, optimizer):
            for p in self.weights:
                p.mask = p.mask & (np.abs(p) >= self.threshold)

    sparsity = Threshold(0.05, init_method=lambda w, s: np.ones(w.shape, bool))
    model, optimizer = sparse_run(sparsity, steps=3)
    weight = model["encoder.fc2.weight"]
    assert 0 < weight.nnz < weight.numel and sparsity.step == 3
    assert np.abs(weight.to_numpy()[weight.mask]).min() >= 0.05
    assert {u["parameter"] for u in sparsity.last_update} == set(sparsity.sparse_params)


def test_a_dynamic_algorithm_of_its_own_with_update_mask():
    class Magnitude(sparse.DynamicSparsityAlgorithm):
        def update_mask(self, p, mask, sparsity):
            assert mask.dtype == bool and p.name in self.sparse_params
            return p.keep(mask, np.abs(p), p.target_nnz)

    schedule = {"type": "polynomial", "init": 0.0, "final": 0.8, "start": 0, "end": 4}
    model, _ = sparse_run(Magnitude(sparsity=schedule, update={"freq": 2}))
    same, _ = sparse_run(sparse.GMP(sparsity=schedule, update={"freq": 2}))
    for name, parameter in model.named_parameters():
        np.testing.assert_array_equal(parameter.to_numpy(), same[name].to_numpy())
        np.testing.assert_array_equal(parameter.mask, same[name].mask)


def test_configure_from_yaml_with_classes_by_name(tmp_path):
    yaml = pytest.importorskip("yaml")

    @lc.register()
    class OnlyDiagonal(sparse.SparsityAlgorithm):
        def __init__(self, offset=0, **keywords):
            super().__init__(
                init_method=lambda w, s: np.eye(*w.shape, k=offset, dtype=bool), **keywords
            )

        def update(self, optimizer):
            pass

    section = yaml.safe_load(
        textwrap.dedent(
            """
            - {algorithm: OnlyDiagonal, param_filter: encoder.fc1.weight, offset: 1}
            - {algorithm: rigl, sparsity: 0.75, param_filter: "encoder.*.weight", update: {freq: 2}}
            - {algorithm: static, sparsity: 0.5, param_filter: head.weight}
            """
        )
    )
    group = sparse.configure(section)
    model, _ = sparse_run(group)
    assert [type(a) for a in group.algorithms] == [OnlyDiagonal, sparse.RigL, sparse.Static]
    np.testing.assert_array_equal(
        model["encoder.fc1.weight"].mask, np.eye(16, 12, k=1, dtype=bool)
    )
    assert model["encoder.fc2.weight"].density == 0.25
    assert isinstance(sparse.configure({"type": "OnlyDiagonal"}), OnlyDiagonal)
    assert isinstance(sparse.configure(0.5), sparse.Static) and sparse.configure(None) is None
    with pytest.raises(lc.ConfigError, match="did you mean 'OnlyDiagonal'"):
        sparse.configure({"algorithm": "OnlyDiagnal"})
    with pytest.raises(lc.ConfigError, match="1: unknown key 'ofset'|ofset"):
        sparse.configure({"algorithm": "OnlyDiagonal", "ofset": 1})
    phases = {"phases": [{"until": 2, "algorithm": "OnlyDiagonal"}, {"algorithm": "dense"}]}
    model, _ = sparse_run(sparse.configure(phases), steps=4)
    assert model["head.weight"].density == 1.0


def test_updates_by_hand():
    sparsity = sparse.SET(sparsity=0.5, update={"freq": 1})
    sparsity.autoupdate = False
    model, optimizer = sparse_run(sparsity)
    mask = model["head.weight"].mask
    assert sparsity.step == 0
    sparsity.update(optimizer)
    assert sparsity.step == 1 and (model["head.weight"].mask != mask).any()
    sparsity.update()
    assert sparsity.step == 2
    by_gradient = sparse.RigL(sparsity=0.5, update={"freq": 1})
    by_gradient.autoupdate = False
    _, optimizer = sparse_run(by_gradient, steps=0)
    with pytest.raises(lc.StateError, match="dense gradient"):
        by_gradient.update(optimizer)
    with pytest.raises(lc.StateError, match="update needs an optimizer"):
        sparse.SET(0.5).update()


def test_hooks_see_targets_and_what_came_out():
    targets, computed = [], []
    sparsity = sparse.Group({"encoder.*.weight": sparse.SET(sparsity=0.5, update={"freq": 2})})
    handle = sparsity.register_target_sparsity_hook(lambda *given: targets.append(given))
    sparsity.register_computed_sparsity_hook(lambda *given: computed.append(given))
    model, optimizer = sparse_run(sparsity)
    (inner,) = sparsity.algorithms
    assert targets[0][0] is inner and targets[0][2] == 0.5
    assert {p.name for _, p, _ in computed} == {"encoder.fc1.weight", "encoder.fc2.weight"}
    assert all(actual == 0.5 for _, _, actual in computed)
    assert len(computed) == 2 * 3  # at first, and after steps 2 and 4
    count = len(targets)
    handle.remove()
    step(model, optimizer)
    step(model, optimizer)
    assert len(targets) == count and len(computed) == 2 * 4


def test_schedules_may_be_functions():
    sparsity = sparse.GMP(sparsity=lambda step: min(0.5, step / 4), update={"freq": 1})
    model, _ = sparse_run(sparsity, steps=3)
    assert model["head.weight"].density == 0.5
    assert sparsity.target_sparsity(model["head.weight"]) == 0.5
    (first, *_) = sparsity.plan(10)
    assert first["update_steps"] == list(range(1, 11)) and first["final_nnz"] == 96
