#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "lacuna/framework/data/loader.h"

namespace lacuna::prefetch_test {
namespace {

// Must be gathered from in the thread that made it.
class OfOneThread final : public Dataset {
 public:
  int64_t size() const override { return 6; }
  const Shape& example_shape() const override { return shape_; }
  int64_t num_classes() const override { return 0; }
  int64_t num_outputs() const override { return 0; }
  bool may_prefetch() const override { return false; }
  Batch gather(std::span<const int64_t> indices) const override {
    EXPECT_EQ(std::this_thread::get_id(), thread_);
    const auto count = static_cast<int64_t>(indices.size());
    return {.inputs = Tensor::zeros(Shape{count, 1}), .labels = {}, .targets = {}, .size = count};
  }

 private:
  Shape shape_{1};
  std::thread::id thread_ = std::this_thread::get_id();
};

TEST(Prefetch, LeavesADatasetThatForbidsItToTheCallingThread) {
  const auto whole = std::make_shared<const OfOneThread>();
  for (const auto& data : {std::shared_ptr<const Dataset>(whole), subset(whole, {1, 3, 5})}) {
    Loader loader(data, {.batch_size = 2, .prefetch = 2});
    for (int i = 0; i < 4; ++i) loader.next();
  }
}

}  // namespace
}  // namespace lacuna::prefetch_test
