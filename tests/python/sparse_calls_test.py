"""Calls of sparsity APIs, one after the other, as scripts that are written for them make them."""

import numpy as np
import pytest
from sparse_model import WEIGHTS, densities, make_model, sparse_run, step

import lacuna as lc
from lacuna import sparse


# Sparsity, its schedules, and when masks change


def test_sparsity_is_read_by_parameter_and_may_be_assigned():
    algorithm = sparse.SET(sparsity=0.5, update={"freq": 1})
    assert algorithm.sparsity == 0.5 and float(algorithm.sparsity) == 0.5
    assert algorithm.sparsity.default(3) == 0.5 and str(algorithm.sparsity) == "0.5"
    model, optimizer = sparse_run(algorithm, steps=1)
    p = model["fc1.weight"]
    assert algorithm.sparsity[p] == algorithm.sparsity["fc1.weight"] == 0.5
    assert algorithm.sparsity[algorithm.weights[0]] == 0.5
    algorithm.sparsity = lambda step: 0.75
    for _ in range(3):
        step(model, optimizer)
    assert densities(model) == [0.25] * 3 and algorithm.sparsity[p] == 0.75
    with pytest.raises(KeyError):
        algorithm.sparsity["fc9.weight"]
    with pytest.raises(lc.ConfigError, match="constant"):
        sparse.GMP([0.1, 0.2]).sparsity = 0.5
    static = sparse.Static(0.5)
    static.sparsity = 0.75
    model, _ = sparse_run(static)
    assert densities(model) == [0.25] * 3
    with pytest.raises(lc.StateError, match="keeps the sparsity"):
        static.sparsity = 0.5
    with pytest.raises(lc.StateError, match="parts"):
        sparse.Group({"*": sparse.Static(0.5)}).sparsity = 0.3


def test_schedules_are_objects_that_may_be_called():
    from lacuna.sparse.utils import HyperParameterSchedule, Lambda, Linear, make_hyperparam_schedule

    made = make_hyperparam_schedule({"type": "linear", "init": 0.25, "slope": 0.125})
    assert isinstance(made, HyperParameterSchedule) and made(2) == made.compute(2) == 0.5
    assert Linear(0.25, 0.125) == made and Linear(init=0.25, slope=0.125)(4) == 0.75
    assert make_hyperparam_schedule(0.5)(9) == 0.5 and make_hyperparam_schedule(made) is made
    assert make_hyperparam_schedule([0.1, 0.2])(0, updates=1) == pytest.approx(0.2)
    assert make_hyperparam_schedule(lambda s: s / 8)(4) == 0.5
    with pytest.raises(lc.ConfigError, match="unknown"):
        make_hyperparam_schedule({"type": "linaer"})

    class Own(HyperParameterSchedule):
        def compute(self, step):
            return min(step / 8, 0.5)

    for schedule in (Own(), Lambda(lambda s: min(s / 8, 0.5)), Linear(0.0, 0.125)):
        model, _ = sparse_run(sparse.GMP(sparsity=schedule, update={"freq": 1}))
        assert densities(model) == [0.5] * 3


def test_update_schedules_in_every_form():
    from lacuna.sparse.utils import FreqSchedule, ListSchedule, make_update_schedule

    assert make_update_schedule({"freq": 2})(4) and not make_update_schedule({"freq": 2})(3)
    assert make_update_schedule([1, 3]).is_update_step(3) and make_update_schedule()(1)
    assert not make_update_schedule({"freq": 2, "stop": 4})(4)
    with pytest.raises(lc.ConfigError, match="frq"):
        make_update_schedule({"frq": 2})
    for update in ({"freq": 2}, 2, [2, 4], {"steps": [2, 4]}, FreqSchedule(2), ListSchedule([2, 4])):
        algorithm = sparse.SET(sparsity=0.5, update=update, init_method="topk")
        sparse_run(algorithm)
        assert algorithm.updates in (2, 3), update  # one more where step 0 is one
        assert algorithm.is_update_step(4) and not algorithm.is_update_step(3)


# Masks of scores, and first masks


def test_mask_functions_count_as_algorithms_do():
    score = np.arange(64.0).reshape(8, 8)
    mask = sparse.make_mask_topk_sparsity(score, 0.75)
    assert mask.dtype == bool and mask.sum() == 16 and mask[6:].all()
    rows = sparse.make_mask_topk_sparsity(score, 0.75, sparse.OutputGroupScoreShaper(4))
    assert (rows.reshape(4, 16).sum(1) == 4).all()
    columns = sparse.make_mask_topk_sparsity(score, 0.75, sparse.InputGroupScoreShaper(num_groups=2))
    assert columns[:, :4].sum() == columns[:, 4:].sum() == 8
    kept = sparse.make_mask_drop_minimum(score, mask, 0.25)
    assert kept.sum() == 12 and not kept[6, :4].any()
    grown = sparse.make_mask_grow_maximum(score, kept, 0.75, mask_nonzero=12)
    np.testing.assert_array_equal(grown, mask)
    below_zero = sparse.make_mask_grow_maximum(score - 100, kept, 0.75)
    np.testing.assert_array_equal(below_zero, mask)
    with pytest.raises(ValueError, match="fraction from 0 to 1"):
        sparse.make_mask_topk_sparsity(score, 1.5)
    with pytest.raises(lc.ShapeError, match="groups|divisible"):
        sparse.make_mask_topk_sparsity(score, 0.5, sparse.OutputGroupScoreShaper(3))


def test_init_methods_are_functions_and_names():
    weight = np.arange(12.0).reshape(3, 4)
    topk = sparse.make_init_method("topk")
    assert topk == "topk" and topk(weight, 0.5).sum() == 6 and topk(weight, 0.5)[2].all()
    assert sparse.from_zeros(weight).sum() == 11
    assert sparse.random(weight, 0.5).sum() == 6 and sparse.checkerboard(weight, 0.5).sum() == 6
    assert sparse.make_init_method(sum) is sum
    with pytest.raises(lc.ConfigError, match="topk"):
        sparse.make_init_method("topq")
    model, _ = sparse_run(sparse.Static(0.5, init_method=sparse.topk))
    same, _ = sparse_run(sparse.Static(0.5, init_method="topk"))
    np.testing.assert_array_equal(model["fc1.weight"].mask, same["fc1.weight"].mask)
    section = {"algorithm": "static", "sparsity": 0.5, "init_method": sparse.topk}
    model, _ = sparse_run(sparse.configure(section))
    np.testing.assert_array_equal(model["fc1.weight"].mask, same["fc1.weight"].mask)

    def lower(p, sparsity, score_shaper=None, device=None):
        return np.tril(np.ones(p.shape, bool))

    model, _ = sparse_run(sparse.Static(0.5, init_method=lower))
    np.testing.assert_array_equal(model["fc2.weight"].mask, np.tril(np.ones((16, 16), bool)))


# Applying, and what is applied


def test_every_way_to_apply():
    for apply in ("apply", "sparsify", "sparsify_module", "__call__"):
        algorithm, model = sparse.Static(0.5), make_model()
        getattr(algorithm, apply)(model)
        optimizer = lc.SGD(model.parameters(), lr=0.1)
        (algorithm.sparsify_optimizer if apply == "sparsify_module" else algorithm)(optimizer)
        step(model, optimizer)
        assert densities(model) == [0.5] * 3 and algorithm.step == 1
    model = make_model()
    assert model.apply(sparse.Static(0.5)) is model
    seen = []
    assert model.apply(lambda module: seen.append(module.type)) is model
    assert seen == ["linear", "relu", "linear", "relu", "linear", "sequential"]
    with pytest.raises(TypeError, match="function f"):
        model.apply(3)


def test_parameters_that_an_algorithm_has():
    algorithm = sparse.Static(0.5)
    model, optimizer = sparse_run(algorithm)
    assert algorithm.num_sparse_params == algorithm.num_sparse_parameters == 3
    for of in (model, optimizer):
        assert [p.name for p in algorithm.get_sparse_params(of)] == WEIGHTS
        assert all(p.mask.mean() == 0.5 for p in algorithm.get_sparse_params(of))
    p = model["fc1.weight"]
    assert algorithm.get_sparse_params(p) is p and p.param is p
    assert list(algorithm.get_sparse_params(model.fc2)) == ["fc2.weight"]
    with pytest.raises(lc.StateError, match="fc1.bias"):
        algorithm.get_sparse_params(model["fc1.bias"])
    assert repr(algorithm) == "Static(sparsity=0.5, parameters=3, step=4)"
    assert repr(sparse.Group({"*": sparse.Static(0.5)})) == "Group(parameters=0, step=0)"


def test_parameters_answer_as_tensors_do():
    model = make_model()
    p = model.fc1.weight
    assert p is model["fc1.weight"] and model.fc1.bias.dim() == 1
    assert p.size() == (16, 12) and p.size(0) == 16 and p.size(-1) == 12
    assert p.numel == p.numel() == 192 and p.dim() == p.ndim == 2
    np.testing.assert_array_equal(p.abs(), np.abs(p.to_numpy()))
    with pytest.raises(AttributeError, match="fc9"):
        model.fc9
    p.requires_dense = True
    model.fc2.requires_dense = True
    assert model.fc2.requires_dense and not model.requires_dense
    model, _ = sparse_run(sparse.Static(0.5), model=model)
    assert densities(model) == [1.0, 1.0, 0.5]


def test_optimizer_states_by_parameter_may_require_to_be_dense_before_any_step():
    model = make_model()
    optimizer = lc.AdamW(model.parameters(), lr=1e-2)
    name = "fc1.weight"
    assert optimizer.state(name) == {} and name in optimizer.state
    optimizer.state[model[name]]["exp_avg"].requires_dense = True
    sparsity = sparse.Static(0.5, layout="masked")
    model.apply(sparsity)
    optimizer.apply(sparsity)
    for _ in range(2):
        step(model, optimizer)
    states, off = optimizer.state[name], ~model[name].mask
    assert states["exp_avg"].requires_dense and not states["exp_avg_sq"].requires_dense
    assert not states["exp_avg_sq"][off].any()
    states["exp_avg"][off] = 0.5
    step(model, optimizer)
    assert (optimizer.state[name]["exp_avg"][off] != 0).all()
    assert [p.name for p in optimizer.state] == [p.name for p, _ in optimizer.state.items()]
    assert len(optimizer.state) == 6 and list(optimizer.state.values()[0]) == list(states)
    model, optimizer = make_model(), None
    optimizer = lc.AdamW(model.parameters(), lr=1e-2)
    optimizer.state[name]["exp_avg"].requires_dense = True
    sparsity = sparse.Static(0.5, layout="csr")
    model.apply(sparsity)
    optimizer.apply(sparsity)
    with pytest.raises(lc.StateError, match="layout: masked"):
        step(model, optimizer)


def test_groups_take_sections_and_filters_that_ask_parameters():
    group = sparse.Group({"fc1.*": {"algorithm": "static", "sparsity": 0.5}})
    group.add(lambda name, p: p.dim() == 2 and p.size(0) == 4 and p.numel() > 9, sparse.Static(0.25))
    group.extend(sparse.Group({"fc2.weight": sparse.GMP(sparsity=[0.5, 0.6], update={"freq": 9})}))
    model, _ = sparse_run(group)
    assert densities(model) == [0.5, 0.5, 0.75]
    assert [type(a) for a in group.algorithms] == [sparse.Static, sparse.Static, sparse.GMP]


# Hooks, states


def test_hooks_get_names_that_are_texts_and_parameters():
    algorithm = sparse.Group({"fc1.weight": sparse.SET(sparsity=0.5, update={"freq": 2})})
    log = {}
    algorithm.register_computed_sparsity_hook(
        lambda s, name, actual: log.update({"sparsity/" + name + "/actual": actual.item()})
    )
    algorithm.register_target_sparsity_hook(
        lambda s, name, target: log.update({f"sparsity/{name}/target": target.item()})
    )
    seen = []
    algorithm.register_computed_sparsity_hook(lambda s, name, _: seen.append((name, name.mask.shape)))
    sparse_run(algorithm)
    assert log["sparsity/fc1.weight/actual"] == 0.5 and len(log) == 2
    assert seen[0] == ("fc1.weight", (16, 12))


def test_hooks_of_optimizers_may_be_pytorch_s_or_an_update():
    sparsity = sparse.SET(sparsity=0.5, update={"freq": 1})
    sparsity.autoupdate = False
    model, optimizer = sparse_run(sparsity, steps=0)
    seen = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append((o.steps, args, kwargs)))
    optimizer.register_step_post_hook(sparsity.update)
    step(model, optimizer)
    assert seen == [(0, (), {})] and sparsity.step == 1 and sparsity.updates == 2


def test_first_masks_are_made_again_and_masks_visited():
    algorithm = sparse.Static(0.5, init_method="topk")
    model, _ = sparse_run(algorithm)
    model["fc1.weight"].mask = np.eye(16, 12, dtype=bool)
    algorithm.initialize()
    assert densities(model)[1:] == [0.5, 0.5]
    visited = []
    algorithm.visit_state(lambda mask: visited.append(mask.shape))
    assert visited == [(16, 12), (16, 16), (4, 16)]
    algorithm.visit_state(np.zeros_like)
    assert densities(model) == [0.0] * 3
    with pytest.raises(lc.StateError, match="no model"):
        sparse.Static(0.5).initialize()


def test_states_of_own_classes_are_saved():
    class Own(sparse.SparsityAlgorithm):
        n = 0

        def update(self, optimizer=None):
            self.n += 1

        def state_dict(self):
            return {**super().state_dict(), "n": self.n}

        def load_state_dict(self, state):
            state = dict(state)
            self.n = int(state.pop("n"))
            super().load_state_dict(state)

    own, other = Own(sparsity=0.5), Own(sparsity=0.5)
    sparse_run(own)
    make_model().apply(other)
    other.load_state_dict(own.state_dict())
    assert other.n == 4 and other.step == 4
