// The `lacuna` program with a user-defined layout and sparsifier, which a configuration then names:
//   example_custom_layout train configs/quickstart.yaml --run-dir runs/rows
//     --set 'sparsity=null' --set 'sparsifiers=[{tensor: "*.weight", every: 10, layout:
//     coordinates, sparsifier: {type: largest_of_rows, keep: 8}}]'
#include "lacuna/lacuna.h"

using namespace lacuna;

/// Row and column of every nonzero, ascending: the index of such a layout.
struct Coordinates final : PatternIndex {
  explicit Coordinates(Positions positions_) : positions(std::move(positions_)) {}
  int64_t bytes() const override { return 4 * positions.count() + 8 * positions.rows(); }
  const Positions positions;
};

/// Values in row-major order. It has a forward product; the gradients fall back to dense.
class CoordinateLayout final : public DenseFallbackLayout {
 public:
  std::string_view name() const override { return "coordinates"; }
  std::shared_ptr<const PatternIndex> make_index(const Shape&, const Positions& p) const override {
    return std::make_shared<const Coordinates>(p);
  }
  Positions positions(const Pattern& pattern) const override { return coordinates(pattern); }
  int64_t stored_size(const Pattern& pattern) const override { return pattern.nnz(); }

  Tensor forward(const WeightView& weight, const Tensor& x, const Tensor& bias) const override {
    const Positions& positions = coordinates(weight.pattern);
    const Tensor rows = x.to(Order::RowMajor);
    const int64_t batch = x.shape().batch(), in = positions.columns(), out = positions.rows();
    Tensor y = Tensor::empty(x.shape().with_features(out));
    for (int64_t b = 0; b < batch; ++b) {
      size_t k = 0;
      for (int64_t r = 0; r < out; ++r) {
        float sum = bias.defined() ? bias.data()[r] : 0.0f;
        for (const uint32_t c : positions.row(r))
          sum += weight.values[k++] * rows.data()[b * in + c];
        y.mutable_data()[b * out + r] = sum;
      }
    }
    return y;
  }

  void compact(const Pattern&, std::span<const float> stored,
               std::span<float> elements) const override {
    std::ranges::copy(stored, elements.begin());
  }
  void expand(const Pattern&, std::span<const float> elements,
              std::span<float> stored) const override {
    std::ranges::copy(elements, stored.begin());
  }

 private:
  static const Positions& coordinates(const Pattern& pattern) {
    return pattern.index_as<Coordinates>().positions;
  }
};

/// Keeps the `keep` largest |w| of every row.
class LargestOfRows final : public Sparsifier {
 public:
  explicit LargestOfRows(int64_t keep) : keep_(keep) {}
  std::string_view type() const override { return "largest_of_rows"; }
  Scope scope() const override { return Scope::Blocking; }
  BitMask keep(const Tensor& rows, const std::string&) const override {
    const int64_t columns = rows.shape().features();
    const int64_t batch = rows.shape().batch();
    const MaskSelector each_row(ScoreGroups::rows(batch), {}, rows.shape());
    return each_row
        .keep(MaskSet::all(rows.shape()), magnitudes(rows.storage()),
              std::min(keep_, columns) * batch)
        .bits();
  }

 private:
  int64_t keep_;
};

const CoordinateLayout layout;
const bool registered =
    add_layout(layout) &&
    sparsifier_registry().add("largest_of_rows", "keeps the `keep` largest |x| of every row",
                              [](const Config& options, uint64_t) {
                                return std::make_shared<LargestOfRows>(require_at_least(
                                    options, "keep", options.required<int64_t>("keep"), 1));
                              });

int main(int argc, char** argv) { return run_program(argc, argv); }
