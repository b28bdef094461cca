// Training on examples of a shape that the configuration gives (data.shape), and predicting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "framework/data/image_files.h"
#include "framework/program/data/trained_table.h"

namespace lacuna::example_shape_test {
namespace {

using testing::HasSubstr;

TEST_F(Use, PredictsForExamplesOfAGivenShape) {
  const auto model = [](const std::string& outputs) {
    return "model: [{type: conv2d, out_channels: 2, kernel: 1}, flatten, {type: linear, "
           "out_features: " +
           outputs +
           "}]\noptimizer: {type: adam, lr: 0.01}\n"
           "train: {epochs: 1, batch_size: 10, threads: 1}\n";
  };
  write_text(config(), "data: {type: glyphs, train_size: 30, shape: [1, 28, 28]}\n" + model("10"));
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
  write_text(folder_ / "other.idx", idx_images(3, 28, 27));
  EXPECT_THAT(predict("other.idx").err, HasSubstr("inputs of shape [28, 27], and the model was"));

  // A table without names needs to know how many columns are inputs.
  std::string table, alone;
  for (int i = 0; i < 40; ++i) {
    const std::string row = number(i) + "," + number(40 - i);
    table += row + "," + (i < 20 ? "0" : "1") + "\n";
    alone += row + "\n";
  }
  write_text(folder_ / "table.csv", table);
  write_text(folder_ / "in.csv", alone);
  write_text(config(), "data: {type: csv, train: " + (folder_ / "table.csv") +
                           ", header: false, shape: [1, 2, 1]}\n" + model("2"));
  ASSERT_EQ(train({}, "table").code, 0);
  const Ended predicted =
      run_lacuna({"predict", run_dir("table"), folder_ / "in.csv", "--out", folder_ / "out.csv"});
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_EQ(read_rows(folder_ / "out.csv", &header).size(), 40u);
}

}  // namespace
}  // namespace lacuna::example_shape_test
