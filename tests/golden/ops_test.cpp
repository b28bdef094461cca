// The operations against PyTorch's values and gradients.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "golden/golden.h"
#include "lacuna/framework/autograd/engine.h"
#include "lacuna/framework/autograd/ops/activation.h"
#include "lacuna/framework/autograd/ops/arithmetic.h"
#include "lacuna/framework/autograd/ops/batch_norm.h"
#include "lacuna/framework/autograd/ops/concatenate.h"
#include "lacuna/framework/autograd/ops/convolution.h"
#include "lacuna/framework/autograd/ops/linear.h"
#include "lacuna/framework/autograd/ops/loss.h"
#include "lacuna/framework/autograd/ops/matmul.h"
#include "lacuna/framework/autograd/ops/norm.h"
#include "lacuna/framework/autograd/ops/pooling.h"
#include "lacuna/framework/autograd/ops/softmax.h"
#include "lacuna/framework/autograd/tokens/attention.h"
#include "lacuna/framework/autograd/tokens/embedding.h"

namespace lacuna::ops_test {
namespace {

struct Case {
  const Hdf5File& file;
  std::string group;
  std::vector<Variable> inputs;
  /// The gradients to compare with grad0, grad1, …: the inputs' own unless the op says otherwise.
  std::vector<std::function<Tensor()>> gradients;

  /// The gradient of the output, as the op lays it out; as it is stored, unless the op says.
  std::function<Tensor(const Tensor&)> of_output = [](const Tensor& gradient) { return gradient; };

  double attribute(const std::string& name) const { return file.attribute_number(group, name); }

  /// A number that holds along both sides of an image; `otherwise` where the file is silent.
  Extent side(const std::string& name, int64_t otherwise) const {
    const bool is_given = file.has_attribute(group, name);
    const int64_t size = is_given ? static_cast<int64_t>(attribute(name)) : otherwise;
    return {size, size};
  }
};

using Op = std::function<Variable(Case&)>;

Op unary(Variable (*op)(const Variable&)) {
  return [op](Case& c) { return op(c.inputs.at(0)); };
}

Op binary(Variable (*op)(const Variable&, const Variable&)) {
  return [op](Case& c) { return op(c.inputs.at(0), c.inputs.at(1)); };
}

Variable run_linear(Case& c) {
  const Tensor& values = c.inputs.at(1).value();
  const auto weight = std::make_shared<Parameter>(values.shape(), Initializer());
  weight->set_name("weight");
  weight->assign(values);
  c.gradients[1] = [weight] { return weight->gradient(); };
  return linear(c.inputs[0], weight, c.inputs.at(2));
}

// In the layout that the weight is stored in when it is sparse, too: all of it is there.
template <bool kSparse>
Variable run_conv2d(Case& c) {
  const Tensor& values = c.inputs.at(1).value();
  const auto weight = std::make_shared<Parameter>(values.shape(), Initializer());
  weight->set_name("weight");
  weight->assign(values);
  if constexpr (kSparse) {
    weight->set_pattern(
        Pattern::make(csr_layout(), values.shape(), Positions::all(values.shape())));
  }
  c.gradients[1] = [weight] {
    return weight->pattern()->layout().to_dense(*weight->pattern(), weight->gradient().storage());
  };
  const Variable bias = c.inputs.size() > 2 ? c.inputs[2] : Variable();
  return conv2d(c.inputs[0], weight, bias,
                {.stride = c.side("stride", 1),
                 .padding = c.side("padding", 0),
                 .dilation = c.side("dilation", 1),
                 .groups = c.side("groups", 1).height});
}

Window pooling_window(const Case& c) {
  const Extent kernel = c.side("kernel", 0);
  return {
      .kernel = kernel, .stride = c.side("stride", kernel.height), .padding = c.side("padding", 0)};
}

Variable run_max_pool(Case& c) { return max_pool2d(c.inputs.at(0), pooling_window(c)); }
Variable run_avg_pool(Case& c) { return avg_pool2d(c.inputs.at(0), pooling_window(c)); }

Variable run_batch_norm(Case& c) {
  return batch_norm(c.inputs.at(0), c.inputs.at(1), c.inputs.at(2), channel_moments(c.inputs[0]),
                    MomentsOf::Batch, {.eps = c.attribute("eps")});
}

Variable run_layer_norm(Case& c) {
  return layer_norm(c.inputs.at(0), c.inputs.at(1), c.inputs.at(2), {.eps = c.attribute("eps")});
}

Variable run_cross_entropy(Case& c) {
  const std::string path = c.group + "/labels";
  const IndexTensor labels(c.file.shape(path), c.file.read_integers(path));
  const bool is_smooth = c.file.has_attribute(c.group, "label_smoothing");
  return cross_entropy(c.inputs.at(0), labels,
                       {.label_smoothing = is_smooth ? c.attribute("label_smoothing") : 0.0});
}

Variable run_embedding(Case& c) {
  const std::string path = c.group + "/indices";
  return embedding(IndexTensor(c.file.shape(path), c.file.read_integers(path)), c.inputs.at(0));
}

// Dimensions 1 and 2 of [batch, a, b, d] exchanged: between heads of tokens and tokens of heads.
Tensor exchanged(const Tensor& x) {
  const Shape& shape = x.shape();
  std::vector<float> values;
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t b = 0; b < shape[2]; ++b) {
      for (int64_t a = 0; a < shape[1]; ++a) {
        const float* row = x.data() + ((n * shape[1] + a) * shape[2] + b) * shape[3];
        values.insert(values.end(), row, row + shape[3]);
      }
    }
  }
  return Tensor::from({shape[0], shape[2], shape[1], shape[3]}, values);
}

// The file has queries, keys and values [batch, heads, T, d], attention has them side by side.
Variable run_attention(Case& c) {
  const Shape shape = c.inputs.at(0).shape();
  const int64_t heads = shape[1], d = shape[3];
  const Shape tokens{shape[0], shape[2], heads * d};
  std::vector<Variable> parts;
  for (size_t i = 0; i < 3; ++i) {
    const Variable part = Variable::leaf(exchanged(c.inputs.at(i).value()).reshape(tokens));
    parts.push_back(part);
    c.gradients.at(i) = [part, shape, heads, d] {
      return exchanged(part.gradient().reshape({shape[0], shape[2], heads, d}));
    };
  }
  c.of_output = [tokens](const Tensor& gradient) { return exchanged(gradient).reshape(tokens); };
  return attention(concatenate(parts, -1),
                   {.heads = heads, .causal = c.attribute("causal") != 0.0});
}

const std::map<std::string, Op> kOps = {
    {"add_broadcast", binary(add)},
    {"attention", run_attention},
    {"attention_causal", run_attention},
    {"avg_pool2d", run_avg_pool},
    {"batch_norm_train", run_batch_norm},
    {"bmm", binary(bmm)},
    {"conv2d", run_conv2d<false>},
    {"conv2d_stride2", run_conv2d<false>},
    {"cross_entropy", run_cross_entropy},
    {"cross_entropy_smoothing", run_cross_entropy},
    {"embedding", run_embedding},
    {"gelu", unary(gelu)},
    {"gelu_tanh", unary(gelu_tanh)},
    {"layer_norm", run_layer_norm},
    {"linear", run_linear},
    {"linear_3d", run_linear},
    {"log_softmax", unary(log_softmax)},
    {"matmul", binary(matmul)},
    {"max_pool2d", run_max_pool},
    {"mse_loss", binary(mse_loss)},
    {"mul_broadcast", binary(multiply)},
    {"relu", unary(relu)},
    {"sigmoid", unary(sigmoid)},
    {"silu", unary(silu)},
    {"softmax", unary(softmax)},
    {"tanh", unary(lacuna::tanh)},
};

/// The op that a case is of: the longest name there is that the case's is, or begins with before an
/// underscore (conv2d_dilated is a conv2d); kOps.end() when there is none.
std::map<std::string, Op>::const_iterator find_op(const std::string& name) {
  for (std::string known = name;; known.resize(known.rfind('_'))) {
    const auto op = kOps.find(known);
    if (op != kOps.end() || known.rfind('_') == std::string::npos) return op;
  }
}

void check(const Hdf5File& file, const std::string& name, const Op& op) {
  Case c{.file = file, .group = "/" + name, .inputs = {}, .gradients = {}};
  for (int i = 0; file.exists(c.group + "/input" + std::to_string(i)); ++i) {
    const Variable input = Variable::leaf(file.read_floats(c.group + "/input" + std::to_string(i)));
    c.inputs.push_back(input);
    c.gradients.push_back([input] { return input.gradient(); });
  }
  const Variable output = op(c);
  golden::expect_close(output.value(), c.of_output(file.read_floats(c.group + "/output")),
                       name + " output");
  const Tensor grad_output = c.of_output(file.read_floats(c.group + "/grad_output"));
  backward(output, grad_output.reshape(output.shape()));
  int gradients = 0;
  for (const std::string& dataset : file.children(c.group)) {
    if (!dataset.starts_with("grad") || dataset == "grad_output") continue;
    const auto index = static_cast<size_t>(std::stoi(dataset.substr(4)));
    golden::expect_close(c.gradients.at(index)(), file.read_floats(c.group + "/" + dataset),
                         name + " " + dataset);
    ++gradients;
  }
  EXPECT_EQ(gradients, static_cast<int>(c.inputs.size())) << name;
}

TEST(GoldenOps, CasesAreToldByTheBeginningsOfTheirNames) {
  EXPECT_EQ(find_op("conv2d_dilated")->first, "conv2d");
  EXPECT_EQ(find_op("conv2d_stride2_seed3")->first, "conv2d_stride2");
  EXPECT_EQ(find_op("attention_causal")->first, "attention_causal");
  EXPECT_EQ(find_op("max_pool2d_3")->first, "max_pool2d");
  for (const char* name : {"conv2", "conv3d", "_", ""}) {
    EXPECT_EQ(find_op(name), kOps.end()) << name;
  }
}

TEST(GoldenOps, ValuesAndGradientsAgreeWithPyTorch) {
  const Hdf5File file = golden::open("ops.h5");
  std::set<std::string> missing;
  for (const auto& [name, op] : kOps) missing.insert(name);
  int cases = 0;
  for (const std::string& name : file.children("/")) {
    if (name == "optimizer") continue;  // optimizer_test.cpp checks it
    const auto op = find_op(name);
    if (op == kOps.end()) {
      ADD_FAILURE() << "ops.h5 holds an op that this test does not know: " << name;
      continue;
    }
    check(file, name, op->second);
    if (name.starts_with("conv2d")) check(file, name, run_conv2d<true>);
    missing.erase(name);
    ++cases;
  }
  for (const std::string& name : missing) ADD_FAILURE() << "ops.h5 lacks the op " << name;
  golden::report("ops.h5", cases);
}

}  // namespace
}  // namespace lacuna::ops_test
