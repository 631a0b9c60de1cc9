// Files as an application reads and writes them.
#pragma once

#include <cstdint>
#include <string>

namespace simulated {

// What a file holds; nothing where there is none.
std::string read_file(const std::string& path);

// Writes in place, as most tools do: what was there is gone from the first moment on. Takes that long over it.
bool write_file(const std::string& path, const std::string& bytes, std::int64_t ns);

} // namespace simulated
