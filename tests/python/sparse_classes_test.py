"""Own classes of sparsity algorithms: what they override, and how configurations find them."""

import numpy as np
import pytest
from sparse_model import WEIGHTS, densities, make_model, sparse_run

import lacuna as lc
from lacuna import sparse


def test_a_class_s_update_may_take_no_optimizer():
    class Counts(sparse.SparsityAlgorithm):
        n = 0

        def update(self):
            self.n += 1

    counts = Counts(sparsity=0.5)
    sparse_run(counts)
    assert counts.n == 4 and counts.step == 4


def test_an_update_that_calls_its_base_s_counts_once():
    class Watched(sparse.SET):
        seen = ()

        def update(self, optimizer=None):
            before = self.step
            super().update(optimizer)
            self.seen += ((before, self.step),)

    watched = Watched(sparsity=0.5, update={"freq": 2})
    model, optimizer = sparse_run(watched)
    assert watched.seen == ((1, 1), (2, 2), (3, 3), (4, 4))
    same, _ = sparse_run(sparse.SET(sparsity=0.5, update={"freq": 2}))
    for name in WEIGHTS:
        np.testing.assert_array_equal(model[name].mask, same[name].mask)
    watched.autoupdate = False
    watched.update(optimizer)
    assert watched.step == 5


def test_every_built_in_class_lets_its_updates_be_changed_or_refuses():
    schedule = {"type": "linear", "init": 0.2, "slope": 0.1}
    for base, sparsity in (
        (sparse.Static, 0.5),
        (sparse.GMP, schedule),
        (sparse.Saliency, schedule),
        (sparse.STE, schedule),
        (sparse.SET, 0.5),
        (sparse.RigL, 0.5),
        (sparse.AcDc, 0.5),
    ):
        calls = []

        class Own(base):
            def update(self, optimizer=None):
                calls.append(self.step)
                super().update(optimizer)

        algorithm = Own(sparsity=sparsity)
        model, _ = sparse_run(algorithm, steps=3)
        same, _ = sparse_run(base(sparsity=sparsity), steps=3)
        assert calls == [1, 2, 3] and algorithm.step == 3, base
        for name in WEIGHTS:
            np.testing.assert_array_equal(model[name].to_numpy(), same[name].to_numpy())
    for base in (sparse.SNIP, sparse.SNFS, sparse.SemiSparse):
        with pytest.raises(TypeError, match="cannot define update"):
            type("Own", (base,), {"update": lambda self, optimizer: None})


def test_update_mask_of_a_built_in_class_may_be_extended():
    class Kept(sparse.RigL):
        """Never drops the first row."""

        def update_mask(self, p, mask, sparsity):
            assert p.dense_grad.shape == p.shape
            mask = super().update_mask(p, mask, sparsity)
            mask[0] = True
            return mask

    model, _ = sparse_run(Kept(sparsity=0.5, update={"freq": 2}))
    assert all(model[name].mask[0].all() for name in WEIGHTS)
    plain = sparse.SET(sparsity=0.5, update={"freq": 2})
    model, _ = sparse_run(plain)
    (weight, *_) = plain.weights
    assert plain.update_mask(weight, weight.mask, 0.5).sum() == weight.target_nnz


def test_masks_set_within_update_are_updates_of_the_algorithm():
    class TopK(sparse.SparsityAlgorithm):
        def update(self, optimizer=None):
            for name, sparse_param in self.sparse_params.items():
                p, sparsity = sparse_param.param, self.sparsity[sparse_param.param]
                assert sparsity == self.sparsity[name]
                sparse_param.mask = sparse.make_mask_topk_sparsity(np.abs(p), sparsity)

    algorithm = TopK(sparsity=[0.5, 0.75], init_method="topk")
    computed = []
    algorithm.register_computed_sparsity_hook(lambda s, name, actual: computed.append(name))
    model, _ = sparse_run(algorithm)
    assert densities(model) == [0.5, 0.5, 0.5]
    assert {u["parameter"] for u in algorithm.last_update} == set(WEIGHTS)
    assert len(computed) == 3 * 5


def test_schedules_reach_an_update_of_its_own():
    class Follows(sparse.SparsityAlgorithm):
        targets = ()

        def update(self, optimizer):
            self.targets += (self.sparsity["fc1.weight"],)

    follows = Follows(sparse.Linear(init=0.0, slope=0.125), "random")
    sparse_run(follows)
    assert follows.targets == (0.125, 0.25, 0.375, 0.5)


def test_dynamic_classes_drop_and_grow_by_the_functions_there_are():
    class Own(sparse.DynamicSparsityAlgorithm):
        def __init__(self, drop_fraction=0.25, **keywords):
            super().__init__(**keywords)
            self.drop_fraction = drop_fraction

        def update(self, optimizer=None):
            self.due = getattr(self, "due", ()) + (bool(self.is_update_step),)
            super().update(optimizer)

        def update_mask(self, p, mask, sparsity):
            assert self.drop_fraction == self.drop_fraction(self.step) == 0.25
            kept = sparse.make_mask_drop_minimum(p.abs(), mask, self.drop_fraction)
            assert kept.sum() == p.kept_after_drop(0.25, mask.sum())
            score = lc.random(0, p.name, self.step).uniform(p.shape)
            return sparse.make_mask_grow_maximum(score, kept, sparsity)

    own = Own(sparsity=0.5, update={"freq": 2}, init_method="random")
    model, _ = sparse_run(own)
    assert densities(model) == [0.5] * 3 and own.due == (False, True, False, True)
    assert own.is_update_step(6) and not own.is_update_step(7)
    with pytest.raises(lc.StateError, match="drops no fraction"):
        sparse.GMP([0.1, 0.2]).drop_fraction = 0.5
    scheduled = sparse.SET(sparsity=0.5)
    scheduled.drop_fraction = sparse.Cosine(init=0.5, half_period=10)
    assert scheduled.drop_fraction == 0.5 and scheduled.drop_fraction(10) == 0.0


def test_configure_finds_classes_by_name_without_registration():
    class MyRigL(sparse.RigL):
        pass

    class WithLevel(sparse.SparsityAlgorithm):
        def __init__(self, level=0.1, **keywords):
            super().__init__(**keywords)
            self.level = level

        def update(self, optimizer=None):
            pass

    for name in ("MyRigL", "myrigl", "MYRIGL", f"{__name__}.MyRigL", MyRigL):
        made = sparse.configure({"algorithm": name, "sparsity": 0.5, "update": {"freq": 2}})
        assert type(made) is MyRigL and made.type == "MyRigL", name
    assert sparse.configure({"type": "withlevel", "sparsity": 0.5, "level": 0.3}).level == 0.3
    group = sparse.configure(
        [
            {"algorithm": "WithLevel", "sparsity": 0.5, "level": 0.3, "param_filter": "fc1.weight"},
            {"algorithm": sparse.Static, "sparsity": 0.75, "param_filter": ["fc2.*weight"]},
        ]
    )
    model, _ = sparse_run(group)
    assert densities(model) == [0.5, 0.25, 1.0]
    assert [type(a) for a in group.algorithms] == [WithLevel, sparse.Static]
    assert sparse.configure(group) is group
    older = WithLevel

    class WithLevel(older):  # as when a notebook's cell is run again
        pass

    assert type(sparse.configure({"algorithm": "WithLevel", "sparsity": 0.5})) is WithLevel
    with pytest.raises(lc.ConfigError, match="unknown sparsity algorithm 'NoSuchClass'"):
        sparse.configure({"algorithm": "NoSuchClass", "sparsity": 0.5})
    with pytest.raises(TypeError, match="SparsityAlgorithm"):
        sparse.configure({"algorithm": dict, "sparsity": 0.5})


def test_names_of_algorithms_are_those_of_their_classes():
    class Found(sparse.SparsityAlgorithm):
        def update(self, optimizer=None):
            pass

    for name, cls in {
        "static": sparse.Static,
        "RigL": sparse.RigL,
        "set": sparse.SET,
        "gmp": sparse.GMP,
        "semi_sparse": sparse.SemiSparse,
        "found": Found,
    }.items():
        assert sparse.map_sparsity_algorithm(name) is cls
    with pytest.raises(lc.ConfigError, match="unknown sparsity algorithm"):
        sparse.map_sparsity_algorithm("nothing")
    for name in ("dense", "dynamic", "srigl", "structured", "magnitude", "wanda", "sparsegpt", "admm"):
        with pytest.raises(lc.ConfigError, match=f"'{name}' has no class in Python"):
            sparse.map_sparsity_algorithm(name)


def test_runs_find_classes_by_name(tmp_path):
    from tiny_run import TINY

    class OnlyInThisTest(sparse.SET):
        pass

    section = {**TINY["sparsity"], "algorithm": "onlyinthistest"}
    run = lc.train({**TINY, "sparsity": section}, run_dir=tmp_path / "own")
    same = lc.train(TINY, run_dir=tmp_path / "set")
    np.testing.assert_array_equal(run.metrics["train"]["loss"], same.metrics["train"]["loss"])
    assert lc.plan({**TINY, "sparsity": section}).parameters[0]["algorithm"] == "OnlyInThisTest"
    run.resume(set={"train.steps": 14})
    assert run.summary["steps"] == 14


def test_an_update_that_would_never_be_called_is_refused():
    algorithm = sparse.SET(sparsity=0.5)
    with pytest.raises(TypeError, match="'update' of a SET cannot be assigned; override update in a"):
        algorithm.update = lambda optimizer=None: None
    algorithm.note = "kept"
    assert algorithm.note == "kept"
