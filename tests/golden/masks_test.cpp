// The selections and mask initializations against the reference implementation's own masks.
#include <string>
#include <vector>

#include "golden/golden.h"
#include "lacuna/sparsity/masks/mask_init.h"
#include "lacuna/sparsity/masks/mask_selector.h"
#include "lacuna/sparsity/options/counting.hpp"

namespace lacuna::masks_test {
namespace {

struct Case {
  const Hdf5File& file;
  std::string path;

  std::vector<float> scores(const char* name) const {
    return file.read_floats(path + "/" + name).to_vector();
  }
  BitMask mask(const char* name) const {
    return BitMask::from_bytes(file.read_bytes(path + "/" + name));
  }
  Shape shape(const char* name) const { return file.shape(path + "/" + name); }
  float number(const char* name) const {
    return static_cast<float>(file.attribute_number(path, name));
  }
};

void expect_top_k(const Case& c, const ScoreGroups& groups) {
  const std::vector<float> scores = c.scores("score");
  const Shape shape = c.shape("score");
  const int64_t per_group = target_nnz(c.number("sparsity"), shape.numel() / groups.count);
  const MaskSet mask =
      MaskSelector(groups, {}, shape).keep(MaskSet::all(shape), scores, per_group * groups.count);
  EXPECT_TRUE(mask.bits() == c.mask("mask")) << c.path;
}

void expect_drop_grow(const Case& c) {
  const Shape shape = c.shape("score");
  const MaskSelector select({}, {}, shape);
  const MaskSet mask(shape, c.mask("mask"));
  const int64_t kept = select.kept_after_drop(c.number("drop_fraction"), mask.count());
  EXPECT_EQ(kept, c.file.attribute_integer(c.path, "num_kept")) << c.path;
  std::vector<float> scores;
  mask.bits().for_each(
      [&, all = c.scores("score")](int64_t i) { scores.push_back(all[static_cast<size_t>(i)]); });
  const MaskSet dropped = select.keep(mask, scores, kept);
  EXPECT_TRUE(dropped.bits() == c.mask("dropped")) << c.path;
  const int64_t target = target_nnz(c.number("sparsity"), shape.numel());
  const ScoreRows grow_scores = rows_of(Tensor::from(shape, c.scores("grow_score")));
  const MaskSet grown = select.grow_maximum(grow_scores, target, dropped);
  EXPECT_TRUE(grown.bits() == c.mask("grown")) << c.path;
}

void expect_checkerboard(const Case& c) {
  const MaskSet mask =
      checkerboard_mask(c.file.attribute_integer(c.path, "rows"),
                        c.file.attribute_integer(c.path, "cols"), c.number("sparsity"));
  EXPECT_TRUE(mask.bits() == c.mask("mask")) << c.path;
}

TEST(GoldenMasks, AgreeExactly) {
  const Hdf5File file = golden::open("masks.h5");
  EXPECT_EQ(file.children("/"),
            (std::vector<std::string>{"checkerboard", "drop_grow", "topk", "topk_input_groups",
                                      "topk_output_groups"}));
  for (const std::string& group : file.children("/")) {
    for (const std::string& name : golden::cases(file, group)) {
      const Case c{file, group + "/" + name};
      if (group == "checkerboard") {
        expect_checkerboard(c);
      } else if (group == "drop_grow") {
        expect_drop_grow(c);
      } else if (group == "topk") {
        expect_top_k(c, ScoreGroups::flat());
      } else if (group == "topk_output_groups") {
        expect_top_k(c, ScoreGroups::rows(file.attribute_integer(c.path, "num_groups")));
      } else if (group == "topk_input_groups") {
        expect_top_k(c, ScoreGroups::columns(file.attribute_integer(c.path, "num_groups")));
      } else {
        ADD_FAILURE() << "unknown group " << group;
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::masks_test
