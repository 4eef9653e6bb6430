// CLI11's app, for headers that take one without including CLI11.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
}
