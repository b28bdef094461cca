// The bytes of safetensors files, good and bad ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// A file of a header and data, whatever they are; the length is the header's unless given.
inline std::string safetensors_bytes(std::string_view header, std::string_view data = "") {
  const uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes.append(header).append(data);
}

/// One tensor's entry in a header: `"name":{…}`.
inline std::string safetensors_entry(const std::string& name, const std::string& dtype,
                                     const std::string& shape, const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

/// Values as they lie in a file.
template <class T>
std::string raw_bytes(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(std::data(values)), values.size() * sizeof(T)};
}

template <class T>
std::string raw_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace lacuna
