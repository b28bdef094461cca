// The names of modules, and that no two of a model lead to the same path.
#pragma once

#include <string>

#include "lacuna/framework/nn/module.h"

namespace lacuna {

/// *Errors:* StateError when the name is empty, has a slash, or a dot at an end or next to another.
void require_module_name(const std::string& name);

/// *Errors:* StateError when the path of a module or parameter of `child`, which is not yet part of
/// `model`, is one of the model's too, or one leads through a parameter of the other.
/// *Cost:* O(modules of the model · log of those of the child).
void require_no_clash(Module& model, Module& child);

}  // namespace lacuna
