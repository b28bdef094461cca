// Accumulate: whether a product overwrites its target or adds to it.
#pragma once

namespace lacuna {

enum class Accumulate { No, Yes };

}  // namespace lacuna
