// Training convolutions on grey images that are stored without a channel (data.add_channel).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "framework/data/image_files.h"
#include "framework/program/data/trained_table.h"
#include "lacuna/framework/interop/load_run.h"

namespace lacuna::added_channel_test {
namespace {

using testing::HasSubstr;

TEST_F(Use, PredictsFromImagesWithAndWithoutTheAddedChannel) {
  write_text(config(),
             "data: {type: glyphs, train_size: 30, test_size: 10, add_channel: true}\n"
             "model: [{type: conv2d, out_channels: 2, kernel: 5}, flatten, {type: linear, "
             "out_features: 10}]\n"
             "optimizer: {type: adam, lr: 0.01}\n"
             "train: {epochs: 1, batch_size: 10, threads: 1}\n");
  const Ended trained = train();
  ASSERT_EQ(trained.code, 0) << trained.err;
  write_text(folder_ / "in.idx", idx_images(3, 28, 28));
  write_text(folder_ / "in.png", plain_png(28, 28, 9, 9, 9));
  std::string header;
  for (const auto& [file, rows] : {std::pair("in.idx", 3u), std::pair("in.png", 1u)}) {
    const Ended predicted = predict(file);
    ASSERT_EQ(predicted.code, 0) << predicted.err;
    EXPECT_EQ(read_rows(folder_ / "out.csv", &header).size(), rows);
  }
  write_text(folder_ / "other.idx", idx_images(3, 14, 56));
  EXPECT_THAT(predict("other.idx").err, HasSubstr("inputs of shape [14, 56], and the model was"));

  const LoadedRun run = load_run(run_dir());
  const std::vector<uint8_t> bytes(2 * 28 * 28, 100);
  const auto outputs = [&](const Shape& shape) {
    return run.predict(ExampleView{.shape = shape, .values = bytes.data()}).to_vector();
  };
  EXPECT_EQ(outputs({2, 28, 28}), outputs({2, 1, 28, 28}));
  EXPECT_THROW(outputs({2, 14, 56}), DataError);
  Examples examples{.example_shape = {28, 28}, .inputs = bytes, .labels = {0, 1}};
  const double loss = run.evaluate(examples).loss;
  examples.example_shape = Shape{1, 28, 28};
  EXPECT_EQ(run.evaluate(examples).loss, loss);
}

}  // namespace
}  // namespace lacuna::added_channel_test
