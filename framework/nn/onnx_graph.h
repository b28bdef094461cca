// OnnxGraph: a graph of ONNX operators (opset 13) under construction, without protobuf, and the
// functions that write layers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lacuna/framework/core/shape.h"
#include "lacuna/framework/core/tensor.h"
#include "lacuna/framework/nn/module.h"
#include "lacuna/framework/param/parameter.h"

namespace lacuna {

/// A constant of the graph, of floats or of int64.
struct OnnxConstant {
  std::string name;
  std::vector<int64_t> dims;
  std::variant<Tensor, std::vector<int64_t>> values;  ///< row-major
};

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::vector<int64_t>> value;
};

struct OnnxNode {
  std::string type;  ///< the operator, as in "Gemm"
  std::string name;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> attributes;
};

/// An input or output of a graph.
struct OnnxValue {
  std::string name;
  bool is_integer = false;                               ///< int64, else float
  std::vector<std::variant<int64_t, std::string>> dims;  ///< a size, or the name of one that varies
};

/// Element types by their numbers in onnx.proto.
enum class OnnxType : int64_t { Float = 1, Int64 = 7, Bool = 9 };

/// Nodes in the order in which they run, and the values they refer to. Names are unique: those of
/// nodes and their outputs begin with the path of the current layer.
class OnnxGraph {
 public:
  using Names = std::vector<std::string>;
  using Attributes = std::vector<OnnxAttribute>;

  /// The prefix of the names of later nodes.
  void begin_layer(std::string path) { layer_ = std::move(path); }

  /// Adds a node with one output. *Returns* the output's name.
  std::string add(const std::string& type, Names inputs, Attributes attributes = {});
  /// Adds a node with this many outputs.
  Names add_with_outputs(const std::string& type, Names inputs, int outputs,
                         Attributes attributes = {});

  /// A parameter's values with zeros where it is masked, once for each parameter, under its name.
  std::string parameter(const Parameter& parameter);
  /// An array of floats with a shape.
  std::string floats(const std::string& what, const Tensor& values);
  std::string scalar(float value);
  std::string integers(std::vector<int64_t> values);
  /// An int64 without dimensions.
  std::string integer(int64_t value);

  // Helpers for several layers.
  std::string reshape(const std::string& x, std::vector<int64_t> dims);
  std::string transpose(const std::string& x, std::vector<int64_t> permutation);
  std::string unsqueeze(const std::string& x, std::vector<int64_t> axes);
  Names split(const std::string& x, std::vector<int64_t> sizes, int64_t axis);
  std::string cast(const std::string& x, OnnxType type);
  /// The size of a dimension, as an int64 with one element.
  std::string size(const std::string& x, int64_t axis);
  /// 0, 1, 2, … for the second dimension of x, as int64.
  std::string positions(const std::string& x);

  void add_input(OnnxValue input) { inputs_.push_back(std::move(input)); }
  void add_output(OnnxValue output) { outputs_.push_back(std::move(output)); }
  /// Gives a value this name, as the graph's output.
  void name_output(const std::string& value, const std::string& name);
  bool has_input(std::string_view name) const;

  const std::vector<OnnxNode>& nodes() const { return nodes_; }
  const std::vector<OnnxConstant>& constants() const { return constants_; }
  const std::vector<OnnxValue>& inputs() const { return inputs_; }
  const std::vector<OnnxValue>& outputs() const { return outputs_; }

 private:
  std::string unique(const std::string& what);
  std::string constant(const std::string& what, std::vector<int64_t> dims,
                       std::variant<Tensor, std::vector<int64_t>> values);

  std::string layer_;
  std::map<std::string, int64_t> uses_;  // of names
  std::map<const Parameter*, std::string> parameters_;
  std::vector<OnnxNode> nodes_;
  std::vector<OnnxConstant> constants_;
  std::vector<OnnxValue> inputs_, outputs_;
};

/// Writes a layer with the input value `input`, of examples of that shape. *Returns* its output
/// value.
using OnnxForm = std::function<std::string(OnnxGraph& graph, const Module& layer,
                                           const std::string& input, const Shape& example)>;

/// One operator without attributes.
OnnxForm onnx_operator(std::string type);
/// For layers that have no effect in inference.
OnnxForm onnx_identity();

/// *Errors:* Error with the layer, its type and what ONNX lacks.
[[noreturn]] void refuse_onnx(const Module& layer, const std::string& why);

/// The form of one class of layers. *Errors:* Error for a layer of another class.
template <class Layer>
OnnxForm onnx_form(std::string (*write)(OnnxGraph&, const Layer&, const std::string&,
                                        const Shape&)) {
  return [write](OnnxGraph& graph, const Module& module, const std::string& input,
                 const Shape& example) {
    const auto* layer = dynamic_cast<const Layer*>(&module);
    if (layer == nullptr) refuse_onnx(module, "another layer is registered under its type");
    return write(graph, *layer, input, example);
  };
}

/// A layer's own parameter of that name; null if it has none.
ParameterPtr own_parameter(const Module& layer, std::string_view name);

}  // namespace lacuna
