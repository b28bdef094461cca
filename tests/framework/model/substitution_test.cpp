#include "lacuna/framework/model/substitution.h"

#include <gtest/gtest.h>

#include <string>

#include "lacuna/framework/core/error.h"
#include "lacuna/framework/io/yaml.h"
#include "throws.h"

namespace lacuna::substitution_test {
namespace {

Scope scope() {
  const Config call = parse_yaml(
      "{width: 16, p: 0.5, act: relu, bias: false, sizes: [1, 2], digits: '8'}", "call.yaml");
  Scope scope{"block", {}};
  for (const auto& [name, value] : call.entries()) scope.arguments.emplace(name, value);
  return scope;
}

Config substituted(const std::string& yaml) {
  return substitute(parse_yaml(yaml, "m.yaml"), scope());
}

TEST(Substitution, PutsValuesWithTheirTypesInTheirPlaces) {
  const Config result = substituted(
      "{out_features: $width, hidden: $(3 * width), half: $(width * p), type: $act, list: [$act, "
      "{bias: $bias}], all: $sizes, quoted: \"$(width + 1)\", plain: 5}");
  EXPECT_EQ(result, parse_yaml("{out_features: 16, hidden: 48, half: 8.0, type: relu, list: [relu, "
                               "{bias: false}], all: [1, 2], quoted: 17, plain: 5}",
                               "expected"));
  EXPECT_EQ(result.required<int64_t>("out_features"), 16);
}

TEST(Substitution, WithinTextPutsText) {
  EXPECT_EQ(substituted("fc_$width").as<std::string>(), "fc_16");
  EXPECT_EQ(substituted("$act.$(width / 2).x").as<std::string>(), "relu.8.x");
  EXPECT_EQ(substituted("$act$width").as<std::string>(), "relu16");
  EXPECT_EQ(substituted("a$$b$$").as<std::string>(), "a$b$");
}

TEST(Substitution, KeepsPositionsAndPathsAndMarksNothing) {
  const Config node =
      parse_yaml("layers:\n  - {type: linear, size: $width, odd: $(2 * width)}\n", "m.yaml");
  const Config result = substitute(node, scope());
  EXPECT_TRUE(mentions_arguments(node));
  expect_throws<ConfigError>([&] { node.require_all_read(); }, "unknown key 'layers'");
  expect_throws<ConfigError>([&] { result.require_all_read(); }, "unknown key 'layers'");
  const Config layer = result.at("layers").items()[0];
  EXPECT_EQ(layer.where(), "m.yaml:2:5: layers.0");
  EXPECT_EQ(layer.at("size").where(), "call.yaml:1:9: layers.0.size");
  EXPECT_EQ(layer.at("odd").where(), "m.yaml:2:39: layers.0.odd");
  EXPECT_EQ(layer.at("type").where(), "m.yaml:2:12: layers.0.type");
}

TEST(Substitution, RefusesWhatIsNotThere) {
  expect_throws<ConfigError>([] { substituted("{size: $widht}"); },
                             "m.yaml:1:8: size: the template 'block' has no argument 'widht'; did "
                             "you mean 'width'?");
  expect_throws<ConfigError>([] { substituted("{size: $(2 * widht)}"); },
                             "m.yaml:1:8: size: the template 'block' has no argument 'widht'; did "
                             "you mean 'width'?");
  expect_throws<ConfigError>(
      [] {
        substitute(parse_yaml("{size: $n}", "m.yaml"), Scope{"block", {}});
      },
      "m.yaml:1:8: size: the template 'block' has no argument 'n'");
  expect_throws<ConfigError>(
      [] { substitute(parse_yaml("{size: $n}", "m.yaml"), {}); },
      "m.yaml:1:8: size: '$n' is used outside a template (define), where there are no arguments");
}

TEST(Substitution, RefusesWhatHasNoValue) {
  expect_throws<ConfigError>([] { substituted("{size: $(2 * act)}"); },
                             "m.yaml:1:8: size: 'act' is 'relu', which is not a number");
  expect_throws<ConfigError>([] { substituted("{size: $(2 * sizes)}"); },
                             "'sizes' is a list of 2 values, which is not a number");
  expect_throws<ConfigError>([] { substituted("{size: $(2 * digits)}"); },
                             "'digits' is '8', which is not a number");
  expect_throws<ConfigError>(
      [] { substituted("{size: $(width / 3)}"); },
      "m.yaml:1:8: size: in the expression '$(width / 3)': 16 / 3 is not an integer");
  expect_throws<ConfigError>([] { substituted("{size: $(width}"); },
                             "m.yaml:1:8: size: a ')' is missing in '$(width'");
  for (const std::string text : {"a$", "$ 3", "$3"}) {
    expect_throws<ConfigError>([&] { substituted("{size: '" + text + "'}"); },
                               "m.yaml:1:8: size: in '" + text +
                                   "': a '$' is followed by the name of an argument or by an "
                                   "expression in parentheses");
  }
  expect_throws<ConfigError>([] { substituted("{size: a$sizes}"); },
                             "in 'a$sizes': a list of 2 values cannot be used within text");
}

}  // namespace
}  // namespace lacuna::substitution_test
