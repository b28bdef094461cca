#include "lacuna/framework/param/saved_parameter.hpp"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <functional>
#include <vector>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/core/random.h"
#include "throws.h"

namespace lacuna::saved_parameter_test {
namespace {

using testing::ElementsAre;

// About a third of the positions; row 0 has none where there are more rows than one.
Positions some_positions(const Shape& shape) {
  const CounterRng rng(3, "positions");
  std::vector<int64_t> flat;
  for (int64_t i = matrix_rows(shape) > 1 ? matrix_columns(shape) : 0; i < shape.numel(); ++i) {
    if (rng.uniform(static_cast<uint64_t>(i)) < 0.3) flat.push_back(i);
  }
  return Positions::of(shape, flat);
}

ParameterPtr make(const Layout& layout, const Shape& shape) {
  auto parameter = std::make_shared<Parameter>(shape, Initializer::normal(1.0));
  parameter->set_name("fc1.weight");
  parameter->set_pattern(Pattern::make(layout, shape, some_positions(shape)));
  return parameter;
}

StateDict saved(const Parameter& parameter) {
  StateDict state;
  save_parameter(parameter, state);
  return state;
}

ParameterPtr restored(const StateDict& state, const Layout* layout) {
  const SavedParameter found(state, "fc1.weight");
  auto parameter = std::make_shared<Parameter>(found.shape(), Initializer::constant(7.0));
  parameter->set_name("fc1.weight");
  found.restore(*parameter, found.pattern(layout));
  return parameter;
}

// As scipy.sparse.csr_matrix((values, indices, indptr), shape) reads them.
TEST(SavedParameter, CompressedOnesAreWhatScipyTakes) {
  const Shape shape{3, 4};
  Parameter parameter(shape, Initializer::constant(0.0));
  parameter.set_name("w");
  parameter.set_pattern(
      Pattern::make(csr_layout(), shape, Positions(shape, {0, 2, 2, 5}, {1, 3, 0, 2, 3})));
  parameter.assign_elements(Tensor::from({5}, std::vector<float>{1, 2, 3, 4, 5}));
  const StateDict state = saved(parameter);
  std::vector<std::string> names;
  for (const auto& [name, value] : state.values()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("w/indices", "w/indptr", "w/layout", "w/shape", "w/values"));
  EXPECT_THAT(state.get<Tensor>("w/values").to_vector(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(state.get<std::vector<int64_t>>("w/indptr"), ElementsAre(0, 2, 2, 5));
  EXPECT_THAT(state.get<std::vector<uint32_t>>("w/indices"), ElementsAre(1, 3, 0, 2, 3));
  EXPECT_EQ(state.get<std::string>("w/layout"), "csr");
  EXPECT_THAT(state.get<std::vector<int64_t>>("w/shape"), ElementsAre(3, 4));
  EXPECT_THAT(saved_parameter_names(state), ElementsAre("w"));
}

TEST(SavedParameter, ComesBackFromEveryLayoutInEveryOther) {
  const Layout* const layouts[] = {&masked_layout(), &csr_layout()};
  for (const Shape& shape : {Shape{17, 31}, Shape{1, 1}, Shape{5, 1}, Shape{2, 3, 5}, Shape{13},
                             Shape{0, 3}, Shape{4, 0}, Shape{64, 700}}) {
    for (const Layout* from : layouts) {
      const ParameterPtr parameter = make(*from, shape);
      const StateDict state = saved(*parameter);
      EXPECT_EQ(SavedParameter(state, "fc1.weight").nnz(), parameter->pattern()->nnz());
      EXPECT_EQ(&SavedParameter(state, "fc1.weight").layout(), from);
      EXPECT_EQ(&restored(state, nullptr)->pattern()->layout(), from);
      for (const Layout* to : layouts) {
        const ParameterPtr other = restored(state, to);
        EXPECT_EQ(&other->pattern()->layout(), to);
        EXPECT_EQ(other->pattern()->positions(), parameter->pattern()->positions());
        EXPECT_EQ(other->to_dense().to_vector(), parameter->to_dense().to_vector())
            << from->name() << " " << to->name() << " " << shape.to_string();
      }
    }
  }
}

TEST(SavedParameter, BecomesDenseOnlyWhenEveryPositionIsThere) {
  const ParameterPtr sparse = make(csr_layout(), {5, 6});
  EXPECT_EQ(&restored(saved(*sparse), &dense_layout())->pattern()->layout(), &masked_layout());
  const ParameterPtr full = make(csr_layout(), {5, 6});
  full->set_pattern(Pattern::make(csr_layout(), {5, 6}, Positions::all({5, 6})));
  EXPECT_TRUE(restored(saved(*full), &dense_layout())->pattern()->is_dense());
  Parameter dense({5, 6}, Initializer::normal(1.0));
  dense.set_name("fc1.weight");
  const ParameterPtr compressed = restored(saved(dense), &csr_layout());
  EXPECT_EQ(compressed->pattern()->nnz(), 30);
  EXPECT_EQ(compressed->to_dense().to_vector(), dense.to_dense().to_vector());
}

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

// All values would take 36 GB, a mask of bits 1.1 GB.
TEST(SavedParameter, TakesMemoryForTheNonzerosAlone) {
  const Shape shape{3'000, 3'000'000};
  const int64_t before = peak_rss_bytes();
  std::vector<int64_t> flat;
  for (int64_t i = 0; i < 1000; ++i) flat.push_back(i * 8'999'000 + i);
  Parameter parameter(shape, Initializer::normal(1.0));
  parameter.set_name("fc1.weight");
  parameter.set_pattern(Pattern::make(csr_layout(), shape, Positions::of(shape, flat)));
  const StateDict state = saved(parameter);
  const SavedParameter found(state, "fc1.weight");
  EXPECT_EQ(found.value_bytes(), 1000 * 4);
  EXPECT_EQ(found.index_bytes(), 1000 * 4 + 3'001 * 8);
  const ParameterPtr back = restored(state, nullptr);
  EXPECT_EQ(back->values().to_vector(), parameter.values().to_vector());
  EXPECT_LT(peak_rss_bytes() - before, 200 << 20);
}

TEST(SavedParameter, SaysWhatIsWrongWithACompressedOne) {
  const auto refuses = [](const std::function<void(StateDict&)>& damage,
                          const std::string& message) {
    Parameter parameter({3, 4}, Initializer::normal(1.0));
    parameter.set_name("w");
    parameter.set_pattern(
        Pattern::make(csr_layout(), {3, 4}, Positions(Shape{3, 4}, {0, 2, 2, 5}, {1, 3, 0, 2, 3})));
    StateDict state = saved(parameter);
    damage(state);
    expect_throws<CheckpointError>([&] { SavedParameter(state, "w"); },
                                   "the parameter 'w' in the checkpoint: " + message);
  };
  using Indices = std::vector<uint32_t>;
  using Integers = std::vector<int64_t>;
  refuses(
      [](StateDict& s) {
        s.set("w/indptr", Integers{0, 3, 2, 5});
      },
      "positions of shape [3, 4]: row 1 ends before it begins");
  refuses(
      [](StateDict& s) {
        s.set("w/indptr", Integers{0, 2, 5});
      },
      "positions of shape [3, 4]: the row offsets do not match 5 positions");
  refuses(
      [](StateDict& s) {
        s.set("w/indptr", Integers{0, 2, 2, 4});
      },
      "positions of shape [3, 4]: the row offsets do not match 5 positions");
  refuses([](StateDict& s) { s.set("w/indptr", Integers{}); },
          "positions of shape [3, 4]: the row offsets do not match 5 positions");
  refuses(
      [](StateDict& s) {
        s.set("w/indices", Indices{1, 4, 0, 2, 3});
      },
      "positions of shape [3, 4]: row 0 has column 4, beyond the last");
  refuses(
      [](StateDict& s) {
        s.set("w/indices", Indices{3, 1, 0, 2, 3});
      },
      "positions of shape [3, 4]: row 0 has column 1 out of order");
  refuses(
      [](StateDict& s) {
        s.set("w/indices", Indices{1, 3, 0, 2});
      },
      "expected a value for each of its 4 indices, found values of shape [5]");
  refuses(
      [](StateDict& s) {
        s.set("w/values", Tensor::zeros({5, 1}));
      },
      "expected a value for each of its 5 indices, found values of shape [5, 1]");
  refuses(
      [](StateDict& s) {
        s.set("w/indices", Integers{1, 3, 0, 2, 3});
      },
      "expected 'indices', the columns as uint32, found another type");
  refuses([](StateDict& s) { s.set("w/shape", Integers{3, -4}); }, "");
  refuses(
      [](StateDict& s) {
        s.set("w/shape", Integers{2, 6});
      },
      "positions of shape [2, 6]: the row offsets do not match 5 positions");
  refuses([](StateDict& s) { s.set("w/layout", std::string("cs")); },
          "its layout 'cs' is unknown; did you mean 'csr'?");
  Parameter tile({2, 4}, Initializer::normal(1.0));
  tile.set_name("w");
  tile.set_pattern(
      Pattern::make(csr_layout(), {2, 4}, Positions(Shape{2, 4}, {0, 3, 3}, {0, 1, 2})));
  StateDict mislabelled = saved(tile);
  mislabelled.set("w/layout", std::string("nm 2:4"));
  expect_throws<CheckpointError>([&] { SavedParameter(mislabelled, "w").pattern(); },
                                 "the parameter 'w' in the checkpoint: layout nm 2:4 cannot store");
  const StateDict empty;
  expect_throws<CheckpointError>([&] { SavedParameter(empty, "w"); },
                                 "the parameter 'w' in the checkpoint: expected an array of "
                                 "float32 or a compressed group, found neither");
}

TEST(SavedParameter, SaysWhatIsMissing) {
  StateDict state;
  state.set("w/indptr", std::vector<int64_t>{0, 0});
  expect_throws<CheckpointError>([&] { SavedParameter(state, "w"); },
                                 "expected 'indices', the columns as uint32, found none");
  state.set("w/indices", std::vector<uint32_t>{});
  expect_throws<CheckpointError>([&] { SavedParameter(state, "w"); },
                                 "expected 'values', an array of float32, found none");
  state.set("w/values", Tensor::zeros({0}));
  expect_throws<CheckpointError>([&] { SavedParameter(state, "w"); },
                                 "expected 'shape', a list of sizes, found none");
  state.set("w/shape", std::vector<int64_t>{1, 9});
  expect_throws<CheckpointError>([&] { SavedParameter(state, "w"); },
                                 "expected 'layout', a layout's name, found none");
  state.set("w/layout", std::string("csr"));
  EXPECT_EQ(SavedParameter(state, "w").nnz(), 0);
}

TEST(SavedParameter, AMaskOfAnotherShapeIsAnError) {
  StateDict state;
  state.set("w", Tensor::zeros({2, 3}));
  state.set("w_mask", ByteArray{{3, 2}, std::vector<uint8_t>(6)});
  expect_throws<CheckpointError>([&] { SavedParameter(state, "w"); },
                                 "'w_mask' has shape [3, 2], its parameter [2, 3]");
}

}  // namespace
}  // namespace lacuna::saved_parameter_test
