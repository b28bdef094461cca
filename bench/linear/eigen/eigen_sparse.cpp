// Eigen's sparse product, as a user of that library would write a sparse layer: column-major
// matrices, expressions, and a loop over the nonzeros for the weight's gradient.
//
// Eigen takes its vector width from the compiler's flags, so this file is compiled once for each
// instruction set (CMakeLists.txt), with a name for Eigen's namespace of its own: functions
// compiled for one must not be taken for those of another.
#define Eigen LACUNA_BENCH_EIGEN
#include <Eigen/Sparse>

#include "linear/eigen_variants.h"

namespace lacuna::bench {
namespace {

Eigen::MatrixXf matrix(const Tensor& tensor) {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const RowMajor>(tensor.data(), tensor.shape()[0], tensor.shape()[1]);
}

Tensor tensor(const Eigen::MatrixXf& matrix) {
  Tensor result = Tensor::empty(Shape{matrix.rows(), matrix.cols()});
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    for (int64_t j = 0; j < matrix.cols(); ++j) {
      result.mutable_data()[i * matrix.cols() + j] = matrix(i, j);
    }
  }
  return result;
}

class EigenSparse final : public LinearContender {
 public:
  explicit EigenSparse(const LinearWorkload& w)
      : x_(matrix(w.x)),
        dy_(matrix(w.dy)),
        bias_(Eigen::Map<const Eigen::RowVectorXf>(w.bias.data(), w.out)),
        weight_(matrix(w.weight).sparseView()) {
    weight_.makeCompressed();
    gradient_ = weight_;
  }

  void forward() override {
    y_.noalias() = x_ * weight_.transpose();
    y_.rowwise() += bias_;
  }

  void backward() override {
    dx_.noalias() = dy_ * weight_;
    for (int column = 0; column < gradient_.outerSize(); ++column) {
      for (Eigen::SparseMatrix<float>::InnerIterator it(gradient_, column); it; ++it) {
        it.valueRef() = dy_.col(it.row()).dot(x_.col(column));
      }
    }
  }

  Tensor y() const override { return tensor(y_); }
  Tensor dx() const override { return tensor(dx_); }
  Tensor dw() const override { return tensor(Eigen::MatrixXf(gradient_)); }

 private:
  Eigen::MatrixXf x_, dy_, y_, dx_;
  Eigen::RowVectorXf bias_;
  Eigen::SparseMatrix<float> weight_, gradient_;
};

}  // namespace

EigenVariant LACUNA_BENCH_VARIANT() {
  return {.make = [](const LinearWorkload& workload) -> LinearContenderPtr {
            return std::make_unique<EigenSparse>(workload);
          },
          .version = "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." +
                     std::to_string(EIGEN_MAJOR_VERSION) + "." +
                     std::to_string(EIGEN_MINOR_VERSION)};
}

}  // namespace lacuna::bench
