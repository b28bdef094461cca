#include "lacuna/framework/autograd/variable.h"

#include <utility>

#include "lacuna/framework/autograd/node.h"
#include "lacuna/framework/core/error.h"

namespace lacuna {

struct Variable::State {
  Tensor value;
  std::shared_ptr<const NmValue> nm;
  std::shared_ptr<DeferredValue> deferred;
  bool is_recorded = true;  // whether operations were recorded when it was deferred
  Shape shape;
  std::shared_ptr<Node> creator;
  std::shared_ptr<GradientSink> sink;
  bool is_leaf = false;
  Tensor gradient;
};

namespace {

thread_local bool recording = true;

// While it exists, operations are recorded, or are not.
class Recording {
 public:
  explicit Recording(bool on) : saved_(std::exchange(recording, on)) {}
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() { recording = saved_; }

 private:
  bool saved_;
};

}  // namespace

bool grad_enabled() { return recording; }
NoGrad::NoGrad() : saved_(std::exchange(recording, false)) {}
NoGrad::~NoGrad() { recording = saved_; }

Variable::Variable(Tensor value) : state_(std::make_shared<State>()) {
  state_->value = std::move(value);
  state_->shape = state_->value.shape();
}

Variable Variable::leaf(Tensor value) {
  Variable variable(std::move(value));
  variable.state_->is_leaf = true;
  return variable;
}

Variable Variable::of(const ParameterPtr& parameter) {
  if (parameter->values().shape() != parameter->shape()) {
    throw StateError("parameter '" + parameter->name() + "' is stored in layout '" +
                     std::string(parameter->pattern()->layout().name()) +
                     "', which only linear layers and convolutions can read as their weight; give "
                     "its sparsity algorithm layout: masked, or use linear() or conv2d()");
  }
  if (!parameter->trainable) return parameter->values();
  Variable variable = leaf(parameter->values());
  variable.state_->sink = parameter;
  return variable;
}

Variable Variable::output(Tensor value, std::shared_ptr<Node> creator) {
  Variable variable(std::move(value));
  variable.state_->creator = std::move(creator);
  return variable;
}

Variable Variable::deferred(const Shape& shape, std::shared_ptr<DeferredValue> value) {
  Variable variable;
  variable.state_ = std::make_shared<State>();
  variable.state_->shape = shape;
  variable.state_->deferred = std::move(value);
  variable.state_->is_recorded = recording;
  return variable;
}

const std::shared_ptr<DeferredValue>& Variable::deferred_value() const {
  static const std::shared_ptr<DeferredValue> none;
  if (!defined() || state_->deferred == nullptr) return none;
  // A fused operation would be recorded according to the current setting; a constant is not.
  const bool is_readable = state_->is_recorded == recording || state_->deferred->is_constant();
  return is_readable ? state_->deferred : none;
}

void Variable::settle() const {
  if (!defined() || state_->deferred == nullptr) return;
  const Recording as_there(state_->is_recorded);
  const Variable computed = std::exchange(state_->deferred, nullptr)->compute();
  state_->value = computed.value();
  state_->creator = computed.creator();
}

const Tensor& Variable::value() const {
  if (!defined()) throw StateError("an undefined variable has no value");
  settle();
  return state_->value;
}

const Shape& Variable::shape() const {
  if (!defined()) throw StateError("an undefined variable has no shape");
  return state_->shape;
}

const std::shared_ptr<const NmValue>& Variable::nm() const {
  static const std::shared_ptr<const NmValue> none;
  return defined() ? state_->nm : none;
}

void Variable::set_nm(std::shared_ptr<const NmValue> nm) { state_->nm = std::move(nm); }

Variable Variable::without_value() const {
  if (!defined() || is_leaf()) return *this;
  settle();
  Variable variable;
  variable.state_ = std::make_shared<State>();
  variable.state_->shape = state_->shape;
  variable.state_->creator = state_->creator;
  return variable;
}

bool Variable::is_leaf() const { return defined() && state_->is_leaf; }

const Tensor& Variable::gradient() const {
  if (!is_leaf()) throw StateError("only a leaf accumulates a gradient");
  return state_->gradient;
}

void Variable::zero_gradient() {
  if (!is_leaf()) throw StateError("only a leaf accumulates a gradient");
  state_->gradient = Tensor();
}

void Variable::accumulate_gradient(const Tensor& gradient) const {
  if (state_->sink != nullptr) {
    state_->sink->accumulate(gradient);
  } else {
    add_gradient(state_->gradient, gradient);
  }
}

const std::shared_ptr<Node>& Variable::creator() const {
  static const std::shared_ptr<Node> none;
  settle();
  return defined() ? state_->creator : none;
}

}  // namespace lacuna
