#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "train/sidecar.hpp"

namespace foreshard::train {

/// A text to be made into a data set whose tokens are its bytes.
struct ByteDataOptions {
  std::filesystem::path text;
  std::string out;              ///< prefix of the files to write
  double val_fraction = 0.1;    ///< of the bytes, at the end of the text; 0 = no validation shard
  std::string source, licence;  ///< notes for the sidecar; no source = the text's path
  bool force = false;           ///< overwrite
};

/// Where the validation part begins: behind the first line end at or after (1 − fraction) of the text, else behind the
/// last before it, else at that very byte. The whole text for fraction 0.
std::size_t split_at_line(std::string_view text, double val_fraction);

/// The files of a data set: {PREFIX_train.bin, PREFIX_val.bin, PREFIX.json}.
std::vector<std::filesystem::path> byte_data_files(const std::string& prefix);

/// Writes the files and returns what the sidecar says. Throws InputError(bad_input) for a text that is missing, empty
/// or of 2^31 bytes or more, InputError(usage) if a file exists and `force` is not set.
Sidecar make_byte_data(const ByteDataOptions& options);

}  // namespace foreshard::train
