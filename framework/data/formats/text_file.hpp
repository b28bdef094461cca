// Files of text, read whole.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// All bytes of a file, unpacked where its name ends in .gz. *Errors:* as ByteReader; DataError
/// when the file is larger than the memory that is left.
std::string read_text_file(const std::filesystem::path& path);

/// Bytes of the mark that some programs begin text in UTF-8 with, and that is no part of it: 3 or
/// 0. *Errors:* DataError, with the name, where it is the mark of UTF-16.
size_t byte_order_mark(std::string_view text, const std::string& name);
/// read_text_file without such a mark. *Errors:* those of both.
std::string read_unmarked_text(const std::filesystem::path& path);

/// All that comes through the standard input. *Errors:* DataError.
std::string read_standard_input();

/// The file, or all files of the folder by name, hidden ones (.name) left out. *Errors:* DataError
/// when there is no such file or folder, none is in it, or what is in it is no file.
std::vector<std::filesystem::path> text_files(const std::filesystem::path& path);

}  // namespace lacuna
