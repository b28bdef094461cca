// Attention by its reference (attention_reference.hpp), for a batch in either storage order.
#pragma once

#include "lacuna/framework/kernels/attention/attention.hpp"

namespace lacuna {

/// As `attention` and `attention_gradient`, in scalar code.
void attention_plainly(const AttentionProblem& problem, const QkvTensors<const Tensor>& qkv,
                       Tensor& y, float* lse);
void attention_gradient_plainly(const AttentionProblem& problem,
                                const QkvTensors<const Tensor>& qkv, const Tensor& y,
                                const float* lse, const Tensor& dy, const QkvTensors<Tensor>& dqkv);

}  // namespace lacuna
