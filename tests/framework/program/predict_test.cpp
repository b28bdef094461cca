// Predicting with a trained model: from tables, images and their files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "framework/data/cifar_files.h"
#include "framework/data/image_files.h"
#include "framework/program/data/trained_table.h"
#include "lacuna/framework/io/hdf5/hdf5_file.hpp"

namespace lacuna::predict_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST_F(Use, PredictsClassesThatAgreeWithEval) {
  train_table();
  const Table test(2);
  write_text(folder_ / "in.csv", test.without_labels);
  const Ended ended = predict("in.csv");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "60 predictions are in " + (folder_ / "out.csv") + "\n");
  std::string header;
  const auto rows = read_rows(folder_ / "out.csv", &header);
  EXPECT_EQ(header, "class,p0,p1,p2");
  ASSERT_EQ(rows.size(), 60u);
  int correct = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), 4u);
    EXPECT_NEAR(rows[i][1] + rows[i][2] + rows[i][3], 1.0, 1e-7);
    const auto best = std::max_element(rows[i].begin() + 1, rows[i].end());
    EXPECT_EQ(static_cast<int>(rows[i][0]), best - rows[i].begin() - 1);
    correct += static_cast<int>(rows[i][0]) == test.labels[i] ? 1 : 0;
  }
  EXPECT_NEAR(correct / 60.0, summary(run_dir()).required<double>("test_accuracy"), 1e-12);
  EXPECT_GT(correct, 48);
}

// What is told besides is not among the predictions.
TEST_F(Use, PredictsToTheStandardOutput) {
  train_table();
  write_text(folder_ / "in.csv", Table(2).with_labels);
  ASSERT_EQ(predict("in.csv").code, 0);
  const Ended ended = run_lacuna({"predict", run_dir(), folder_ / "in.csv", "--out", "-"},
                                 {.folder = folder_.path()});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, read_text(folder_ / "out.csv"));
  EXPECT_THAT(ended.err, AllOf(HasSubstr("60 predictions are on the standard output\n"),
                               HasSubstr("of 60 examples, by the column 'label'\n")));
  EXPECT_THAT(listing(folder_.path()), Not(StartsWith("-")));
  const Ended full = run_lacuna({"predict", run_dir(), folder_ / "in.csv", "--out", "-"},
                                {.standard_out = "/dev/full"});
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, HasSubstr("cannot write to the standard output"));
}

TEST_F(Use, PredictsFromImagesOfSeveralFiles) {
  ASSERT_EQ(train().code, 0);
  write_text(folder_ / "a.idx", idx_images(3, 28, 28));
  write_text(folder_ / "b.idx", idx_images(2, 28, 28));
  const Ended ended = run_lacuna({"predict", checkpoint(18), folder_ / "a.idx", folder_ / "b.idx",
                                  "--out", folder_ / "out.csv"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  std::string header;
  const auto rows = read_rows(folder_ / "out.csv", &header);
  EXPECT_EQ(header, "class,p0,p1,p2,p3,p4,p5,p6,p7,p8,p9");
  ASSERT_EQ(rows.size(), 5u);
  // The first image of either file is the same; its probabilities are equal but for rounding. Each
  // file is a batch, of three and of two, and a product may add its terms in an order that hangs on
  // the batch, as oneDNN's does under AVX2: its sums of 784 terms differ by 1e-6 and the
  // probabilities by 6e-8, while those of another image differ by 0.03.
  const auto is_same_image = testing::Pointwise(testing::DoubleNear(1e-5), rows[3]);
  EXPECT_THAT(rows[0], is_same_image);
  EXPECT_THAT(rows[1], testing::Not(is_same_image));

  // As in data.dir, a file that is there packed alone is found by its name without .gz.
  ASSERT_EQ(std::system(("gzip '" + (folder_ / "a.idx") + "'").c_str()), 0);
  ASSERT_FALSE(std::filesystem::exists(folder_ / "a.idx"));
  const Ended packed = run_lacuna({"predict", checkpoint(18), folder_ / "a.idx", folder_ / "b.idx",
                                   "--out", folder_ / "packed.csv"});
  EXPECT_EQ(packed.code, 0) << packed.err;
  EXPECT_EQ(read_text(folder_ / "packed.csv"), read_text(folder_ / "out.csv"));
}

// Two classes of images, red and blue, of another size than the examples.
TEST_F(Use, TrainsOnFoldersOfImagesAndPredictsFromFiles) {
  for (const char* split : {"train", "test"}) {
    for (int i = 0; i < 6; ++i) {
      const std::string file = "/" + std::to_string(i) + ".png";
      for (const char* name : {"blue", "red"}) {
        const std::string folder = folder_ / (std::string("images/") + split + "/" + name);
        std::filesystem::create_directories(folder);
        const auto strong = static_cast<uint8_t>(200 - 10 * i), weak = static_cast<uint8_t>(5 * i);
        const bool is_red = name[0] == 'r';
        write_text(folder + file,
                   plain_png(9, 6, is_red ? strong : weak, weak, is_red ? weak : strong));
      }
    }
  }
  write_text(config(), "data: {type: image_folder, dir: " + (folder_ / "images") +
                           ", size: 4, normalize: standard, augment: {crop: 1, flip: true}}\n"
                           "model: [flatten, {type: linear, out_features: 2}]\n"
                           "optimizer: {type: adam, lr: 0.05}\n"
                           "train: {epochs: 8, batch_size: 4, threads: 1}\n");
  const Ended trained = train();
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(summary(run_dir()).required<double>("test_accuracy"), 1.0);
  const Ended evaluated = run_lacuna({"eval", run_dir(), "--json"});
  EXPECT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(parse_yaml(evaluated.out, "out").at("splits").items()[0].at("loss").text(),
            summary(run_dir()).at("test_loss").text());
  const Ended predicted =
      run_lacuna({"predict", run_dir(), folder_ / "images/test/red/3.png",
                  folder_ / "images/test/blue/2.png", "--out", folder_ / "out.csv"});
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_THAT(read_text(folder_ / "out.csv"),
              testing::MatchesRegex("class,p_blue,p_red\nred,[^\n]*\nblue,[^\n]*\n"));
  // A folder: with the file of each, those of its folders too, and of what is given beside it.
  const std::string images = folder_ / "images/test", red = folder_ / "images/train/red/1.png";
  write_text(images + "/.hidden", "no image");
  const Ended of_folder =
      run_lacuna({"predict", run_dir(), images, red, "--out", folder_ / "out.csv"});
  ASSERT_EQ(of_folder.code, 0) << of_folder.err;
  EXPECT_THAT(of_folder.out, StartsWith("13 predictions"));
  std::string expected = "file,class,p_blue,p_red\n";
  for (const char* name : {"blue", "red"}) {
    for (int i = 0; i < 6; ++i) {
      expected += images + "/" + name + "/" + std::to_string(i) + ".png," + name + ",[^\n]*\n";
    }
  }
  EXPECT_THAT(read_text(folder_ / "out.csv"),
              testing::MatchesRegex(expected + red + ",red,[^\n]*\n"));
  const std::string broken_folder = folder_ / "broken";
  std::filesystem::create_directories(broken_folder + "/a/b");
  EXPECT_THAT(predict("broken").err, HasSubstr("/broken/a/b: a folder inside a class folder"));
  std::filesystem::remove(broken_folder + "/a/b");
  EXPECT_THAT(predict("broken").err, HasSubstr("/broken: this folder holds no images"));
  write_text(broken_folder + "/a/notes.txt", "no image");
  EXPECT_THAT(predict("broken").err,
              HasSubstr("/broken/a/notes.txt: not a PNG, JPEG, WebP or GIF image"));
  // The same images under other names would count as other classes.
  std::filesystem::rename(folder_ / "images", folder_ / "renamed");
  for (const char* split : {"train", "test"}) {
    const std::string folder = folder_ / (std::string("renamed/") + split);
    std::filesystem::rename(folder + "/blue", folder + "/violet");
  }
  const Ended others =
      run_lacuna({"eval", run_dir(), "--set", "data.dir=" + (folder_ / "renamed")});
  EXPECT_EQ(others.code, 1);
  EXPECT_THAT(others.err,
              HasSubstr("the data has 2 classes, of which number 0 is 'red'; the model was "
                        "trained on 2, where it is 'blue'"));
  write_text(folder_ / "broken.png", plain_png(9, 6, 1, 2, 3).substr(0, 50));
  write_text(folder_ / "images.bin", "no images");
  EXPECT_THAT(predict("images.bin").err,
              HasSubstr("(CIFAR's .bin files need a model that was trained on them; this one was "
                        "trained on image_folder)"));
  const Ended broken = predict("broken.png");
  EXPECT_EQ(broken.code, 1);
  EXPECT_THAT(broken.err, HasSubstr("broken.png: the PNG image is damaged or cut short"));
  write_text(folder_ / "text.PNG", "no image");
  EXPECT_THAT(predict("text.PNG").err,
              HasSubstr("text.PNG: its content is neither a PNG nor a JPEG image"));
  EXPECT_THAT(predict("none.png").err, Not(HasSubstr("its content")));
}

TEST_F(Use, TrainsOnCifarAndPredictsFromItsFiles) {
  write_cifar10(folder_ / "cifar");
  write_text(config(), "data: {type: cifar10, dir: " + (folder_ / "cifar") +
                           ", normalize: {mean: [0.5, 0.4, 0.3], std: [0.2, 0.3, 0.4]}}\n"
                           "model: [flatten, {type: linear, out_features: 10}]\n"
                           "optimizer: {type: adam, lr: 0.01}\n"
                           "train: {epochs: 2, batch_size: 4, threads: 1}\n");
  const Ended trained = train();
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Ended evaluated = run_lacuna({"eval", run_dir(), "--json"});
  EXPECT_EQ(parse_yaml(evaluated.out, "out").at("splits").items()[0].at("loss").text(),
            summary(run_dir()).at("test_loss").text());
  const Ended predicted = predict("cifar/test_batch.bin");
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  std::string header;
  EXPECT_EQ(read_rows(folder_ / "out.csv", &header).size(), 2u);
  write_text(folder_ / "in.png", plain_png(64, 40, 9, 90, 200));
  EXPECT_EQ(predict("in.png").code, 0);
}

// Who trained on a table predicts on one, whatever it is called.
TEST_F(Use, PredictsFromATableOfAnyName) {
  train_table();
  const Table test(2);
  write_text(folder_ / "in.csv", test.without_labels);
  write_text(folder_ / "in.data", test.without_labels);
  ASSERT_EQ(predict("in.csv").code, 0);
  const Ended ended = predict("in.data", "other.csv");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(read_text(folder_ / "other.csv"), read_text(folder_ / "out.csv"));
}

TEST_F(Use, PredictRefusesAnImageForATable) {
  train_table();
  write_text(folder_ / "in.png", plain_png(4, 4, 9, 90, 200));
  const Ended ended = predict("in.png");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err,
              HasSubstr("in.png' is an image, and the model was trained on inputs of shape [2]"));
  std::filesystem::create_directory(folder_ / "images");
  write_text(folder_ / "images/in.png", plain_png(4, 4, 9, 90, 200));
  EXPECT_THAT(predict("images").err,
              HasSubstr("images' is a folder, and the model was trained on inputs of shape [2]"));
}

TEST_F(Use, PredictsValuesOfARegression) {
  std::string table = "x,y\n", inputs = "x\n";
  for (int i = 0; i < 50; ++i) {
    table += number(i / 50.0) + "," + number(3.0 - i / 25.0) + "\n";
    inputs += number(i / 50.0) + "\n";
  }
  write_text(folder_ / "train.csv", table);
  write_text(folder_ / "in.csv", inputs);
  write_text(config(), "data: {type: csv, task: regression, train: " + (folder_ / "train.csv") +
                           ", test: " + (folder_ / "train.csv") +
                           "}\n"
                           "model: [{type: linear, out_features: 1}]\n"
                           "optimizer: {type: sgd, lr: 0.3, momentum: 0.9}\n"
                           "train: {epochs: 40, batch_size: 10}\n");
  const Ended trained = train();
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_FALSE(summary(run_dir()).has("test_accuracy"));
  EXPECT_FALSE(events(run_dir()).front().has("accuracy"));
  EXPECT_LT(summary(run_dir()).required<double>("test_loss"), 1e-4);
  EXPECT_THAT(run_lacuna({"eval", run_dir()}).out, testing::Not(HasSubstr("accuracy")));
  ASSERT_EQ(predict("in.csv").code, 0);
  std::string header;
  const auto rows = read_rows(folder_ / "out.csv", &header);
  EXPECT_EQ(header, "y0");
  ASSERT_EQ(rows.size(), 50u);
  EXPECT_NEAR(rows[25][0], 2.0, 0.05);
}

// Two targets for each example: whether x, and whether y, is large.
TEST_F(Use, DecidesSeveralThingsAtOnce) {
  Tensor inputs = Tensor::empty({60, 2}), targets = Tensor::empty({60, 2});
  std::string table = "x,y\n";
  for (int64_t i = 0; i < 60; ++i) {
    const double values[] = {static_cast<double>(i * 7 % 60) / 60.0,
                             static_cast<double>(i * 11 % 60) / 60.0};
    for (int64_t j = 0; j < 2; ++j) {
      inputs.mutable_data()[2 * i + j] = static_cast<float>(values[j]);
      targets.mutable_data()[2 * i + j] = values[j] > 0.5 ? 1.0f : 0.0f;
    }
    table += number(values[0]) + "," + number(values[1]) + "\n";
  }
  Hdf5File file = Hdf5File::create(folder_ / "data.h5");
  for (const char* split : {"train", "test"}) {
    file.write(std::string(split) + "_inputs", inputs);
    file.write(std::string(split) + "_targets", targets);
  }
  file.close();
  write_text(folder_ / "in.csv", table);
  write_text(config(), "data: {type: hdf5, task: regression, path: " + (folder_ / "data.h5") +
                           ", test_inputs: test_inputs, test_targets: test_targets, "
                           "normalize: standard}\n"
                           "model: [{type: linear, out_features: 2}]\n"
                           "loss: binary_cross_entropy\n"
                           "optimizer: {type: adam, lr: 0.1}\n"
                           "train: {epochs: 30, batch_size: 10}\n");
  const Ended trained = train();
  ASSERT_EQ(trained.code, 0) << trained.err;
  const double accuracy = summary(run_dir()).required<double>("test_accuracy");
  EXPECT_GT(accuracy, 0.9);
  EXPECT_LE(accuracy, 1.0);
  const Ended ended = run_lacuna({"eval", run_dir(), "--json"});
  const Config split = parse_yaml(ended.out, "out").at("splits").items()[0];
  EXPECT_EQ(split.required<double>("accuracy"), accuracy);
  EXPECT_FALSE(split.has("confusion_matrix"));
  ASSERT_EQ(predict("in.csv").code, 0);
  std::string header;
  const auto rows = read_rows(folder_ / "out.csv", &header);
  EXPECT_EQ(header, "p0,p1");
  ASSERT_EQ(rows.size(), 60u);
  int64_t right = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < 2; ++j) {
      right += (rows[i][j] > 0.5) == (targets.data()[2 * i + j] == 1.0f) ? 1 : 0;
    }
  }
  EXPECT_NEAR(static_cast<double>(right) / 120.0, accuracy, 1e-12);
}

TEST_F(Use, DecidesBetweenTwoClassesWithOneOutput) {
  write_text(config(),
             "data: {type: synthetic, features: 8, classes: 2, train_size: 200, test_size: 40}\n"
             "model: [{type: linear, out_features: 1}]\n"
             "loss: binary_cross_entropy\n"
             "optimizer: {type: adam, lr: 0.1}\n"
             "train: {epochs: 5, batch_size: 20, threads: 1}\n");
  const Ended trained = train();
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Config split =
      parse_yaml(run_lacuna({"eval", run_dir(), "--json"}).out, "out").at("splits").items()[0];
  const std::vector<Config> rows = split.at("confusion_matrix").items();
  ASSERT_EQ(rows.size(), 2u);
  const auto right = rows[0].items()[0].as<int64_t>() + rows[1].items()[1].as<int64_t>();
  EXPECT_NEAR(static_cast<double>(right) / 40.0, split.required<double>("accuracy"), 1e-12);
  EXPECT_FALSE(split.has("top5_accuracy"));
  write_text(folder_ / "in.csv", "a,b,c,d,e,f,g,h\n1,2,3,4,5,6,7,8\n");
  ASSERT_EQ(predict("in.csv").code, 0);
  std::string header;
  const auto predicted = read_rows(folder_ / "out.csv", &header);
  EXPECT_EQ(header, "class,p0,p1");
  ASSERT_EQ(predicted.size(), 1u);
  EXPECT_NEAR(predicted[0][1] + predicted[0][2], 1.0, 1e-7);
  EXPECT_EQ(predicted[0][0] == 1.0, predicted[0][2] > 0.5);
}

TEST_F(Use, PredictRefusesInputsThatDoNotFitAndWritesNothing) {
  train_table();
  const auto refused = [&](const std::string& text, const std::string& message) {
    write_text(folder_ / "in.csv", text);
    const Ended ended = predict("in.csv");
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.err, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.csv"));
  };
  refused("x,z\n1,2\n",
          "in.csv: columns that the model was trained on are missing: y; it has columns that the "
          "model does not know: z");
  refused("x,y\n1,a\n", "in.csv:2:3");
  refused("x,y\n", "no examples");
  EXPECT_THAT(predict("missing.csv").err, HasSubstr("missing.csv"));
  EXPECT_THAT(predict("config.yaml").err, HasSubstr("config.yaml"));
  EXPECT_EQ(predict("missing.csv").code, 1);
}

TEST_F(Use, PredictWritesAllOrNothing) {
  train_table();
  write_text(folder_ / "in.csv", Table(2).without_labels);
  const Ended nowhere = predict("in.csv", "no/such/out.csv");
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.err, AllOf(HasSubstr("cannot write '" + (folder_ / "no/such/out.csv")),
                                 HasSubstr("No such file or directory")));
  // Less than the output, more than the KiB of shared memory that clang's OpenMP begins with.
  const Ended full =
      run_lacuna({"predict", run_dir(), folder_ / "in.csv", "--out", folder_ / "out.csv"},
                 {.max_file_bytes = 1500});
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, HasSubstr("cannot write '" + (folder_ / "out.csv") + "': File too large"));
  EXPECT_THAT(listing(folder_.path()), Not(HasSubstr("out.csv")));
  write_text(folder_ / "out.csv", "of before");
  EXPECT_EQ(run_lacuna({"predict", run_dir(), folder_ / "in.csv", "--out", folder_ / "out.csv"},
                       {.max_file_bytes = 1500})
                .code,
            1);
  EXPECT_EQ(read_text(folder_ / "out.csv"), "of before");
  EXPECT_EQ(predict("in.csv",
                    "../" + std::filesystem::path(folder_.path()).filename().string() + "/out.csv")
                .code,
            0);
}

TEST_F(Use, PredictWritesToWhatIsNoFile) {
  train_table();
  write_text(folder_ / "in.csv", Table(2).without_labels);
  std::filesystem::create_symlink(folder_ / "target.csv", folder_ / "link.csv");
  EXPECT_EQ(predict("in.csv", "link.csv").code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link.csv"));
  EXPECT_THAT(read_text(folder_ / "target.csv"), StartsWith("class,p0,p1,p2\n"));
  const Ended full = run_lacuna({"predict", run_dir(), folder_ / "in.csv", "--out", "/dev/full"});
  EXPECT_EQ(full.code, 1);
  EXPECT_THAT(full.err, HasSubstr("cannot write '/dev/full': No space left on device"));
}

}  // namespace
}  // namespace lacuna::predict_test
