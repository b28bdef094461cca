// An encoder block of a transformer, as a model of a configuration.
#pragma once

#include <cstdint>
#include <string>

namespace lacuna::bench {

/// BERT's (Devlin et al., 2018, arXiv:1810.04805): norms after the additions.
std::string encoder_layers(int64_t features, int64_t hidden, int64_t heads);

}  // namespace lacuna::bench
