// The selections and mask initializations against the reference implementation's own masks.
#include <string>
#include <vector>

#include "golden/golden.h"
#include "lacuna/sparsity/mask_init.h"
#include "lacuna/sparsity/selection.h"

namespace lacuna {
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
  const BitMask mask =
      top_k(scores, per_group, BitMask::ones(shape.numel()), GroupIndex(groups, shape));
  EXPECT_TRUE(mask == c.mask("mask")) << c.path;
}

void expect_drop_grow(const Case& c) {
  const Shape shape = c.shape("score");
  const GroupIndex groups(ScoreGroups::flat(), shape);
  const BitMask mask = c.mask("mask");
  const int64_t kept = kept_after_drop(c.number("drop_fraction"), mask.count());
  EXPECT_EQ(kept, c.file.attribute_integer(c.path, "num_kept")) << c.path;
  const BitMask dropped = drop_minimum(c.scores("score"), kept, mask, groups);
  EXPECT_TRUE(dropped == c.mask("dropped")) << c.path;
  const int64_t target = target_nnz(c.number("sparsity"), shape.numel());
  const BitMask grown = grow_maximum(c.scores("grow_score"), target, dropped, groups);
  EXPECT_TRUE(grown == c.mask("grown")) << c.path;
}

void expect_checkerboard(const Case& c) {
  const Positions mask =
      checkerboard_mask(c.file.attribute_integer(c.path, "rows"),
                        c.file.attribute_integer(c.path, "cols"), c.number("sparsity"));
  EXPECT_TRUE(mask.to_mask() == c.mask("mask")) << c.path;
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
}  // namespace lacuna
