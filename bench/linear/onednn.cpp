// The dense opponent: oneDNN's sgemm called directly.
#include "linear/contender.h"

#if LACUNA_HAVE_DNNL
#include <dnnl.h>
#endif

namespace lacuna::bench {

#if LACUNA_HAVE_DNNL
namespace {

class OneDnn final : public LinearContender {
 public:
  explicit OneDnn(const LinearWorkload& w)
      : w_(w),
        y_(Tensor::zeros(Shape{w.batch, w.out})),
        dx_(Tensor::zeros(Shape{w.batch, w.in})),
        dw_(Tensor::zeros(Shape{w.out, w.in})) {}

  void forward() override {
    dnnl_sgemm('N', 'T', w_.batch, w_.out, w_.in, 1.0f, w_.x.data(), w_.in, w_.weight.data(), w_.in,
               0.0f, y_.mutable_data(), w_.out);
  }
  void backward() override {
    dnnl_sgemm('N', 'N', w_.batch, w_.in, w_.out, 1.0f, w_.dy.data(), w_.out, w_.weight.data(),
               w_.in, 0.0f, dx_.mutable_data(), w_.in);
    dnnl_sgemm('T', 'N', w_.out, w_.in, w_.batch, 1.0f, w_.dy.data(), w_.out, w_.x.data(), w_.in,
               0.0f, dw_.mutable_data(), w_.in);
  }
  Tensor y() const override {  // with the bias that the others add
    Tensor sum = y_.clone();
    for (int64_t i = 0; i < sum.numel(); ++i) sum.mutable_data()[i] += w_.bias.data()[i % w_.out];
    return sum;
  }
  Tensor dx() const override { return dx_; }
  Tensor dw() const override { return dw_; }

 private:
  LinearWorkload w_;
  Tensor y_, dx_, dw_;
};

}  // namespace

std::unique_ptr<LinearContender> make_onednn(const LinearWorkload& workload) {
  return std::make_unique<OneDnn>(workload);
}
#else
std::unique_ptr<LinearContender> make_onednn(const LinearWorkload&) { return nullptr; }
#endif

}  // namespace lacuna::bench
