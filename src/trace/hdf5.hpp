#pragma once
#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Small owners of HDF5 handles and the few calls a trace needs. Every failed call is a LibraryError that names the
/// call, what it was made on, and HDF5's own innermost reason. Not thread-safe, as the library is not.
namespace foreshard::trace::hdf5 {

/// Owns one HDF5 id.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Handle() = default;
  /// Takes over `id`, the answer of `call` on `what`; throws LibraryError if it is negative.
  Handle(hid_t id, Close release, const char* call, std::string_view what);
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  hid_t id() const { return id_; }
  /// Closes now; throws LibraryError if that fails.
  void close(std::string_view what);

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

/// Throws LibraryError if `status` is negative, else returns it.
int checked(int status, const char* call, std::string_view what);

/// What a dataset is called, what it is measured in, and what it says.
struct Column {
  std::string name;
  std::string units;
  std::string long_name;
};

// Types. Numbers are stored as the machine has them (little-endian); enums by name, so that values may be renumbered.
template <class T>
hid_t native() {
  if constexpr (std::is_same_v<T, std::int8_t>) return H5T_NATIVE_INT8;
  if constexpr (std::is_same_v<T, std::uint8_t>) return H5T_NATIVE_UINT8;
  if constexpr (std::is_same_v<T, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::is_same_v<T, std::uint32_t>) return H5T_NATIVE_UINT32;
  if constexpr (std::is_same_v<T, std::int64_t>) return H5T_NATIVE_INT64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return H5T_NATIVE_UINT64;
  if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
}
Handle copy_type(hid_t type);
/// An 8-bit enum of the given names, valued 0, 1, ….
Handle enum_type(std::span<const std::string_view> names);
/// FALSE = 0, TRUE = 1 in 8 bits: what h5py calls bool.
Handle bool_type();
/// UTF-8 text of at most `size` bytes, padded with zeros.
Handle text_type(std::size_t size);

// Files.
/// A new file, readable by HDF5 1.8 and later; replaces an existing one.
Handle create_file(const std::string& path);
/// Opens for reading, without a lock, so that a file whose writer still runs can be read too.
Handle open_file(const std::string& path);

// Groups.
Handle create_group(hid_t parent, const std::string& name);
Handle open_group(hid_t parent, const std::string& name);
bool has(hid_t parent, const std::string& name);

// Attributes. Reading throws LibraryError where the attribute is absent or of another sort.
bool has_attribute(hid_t object, const char* name);
void write_attribute(hid_t object, const char* name, std::string_view text);
void write_attribute(hid_t object, const char* name, const char* text);
void write_attribute(hid_t object, const char* name, std::int64_t value);
void rewrite_attribute(hid_t object, const char* name, std::int64_t value);  ///< one that exists
std::string read_text_attribute(hid_t object, const char* name);
std::int64_t read_integer_attribute(hid_t object, const char* name);

/// Writes a scalar dataset.
void write_scalar(hid_t parent, const Column& column, hid_t type, const void* value);
void read_scalar(hid_t parent, const std::string& name, hid_t type, void* value);

/// A one-dimensional dataset that grows by appending; chunks of `chunk_rows`, shuffled and deflated.
class Appender {
 public:
  Appender(hid_t parent, const Column& column, hid_t type, hsize_t chunk_rows);
  void append(const void* values, hsize_t rows);

 private:
  std::string name_;
  hid_t type_;  ///< not owned
  Handle dataset_;
  hsize_t rows_ = 0;
};

/// Number of rows of a one-dimensional dataset.
hsize_t row_count(hid_t parent, const std::string& name);
/// Its first `rows` values, converted to `type`; `values` has room for them. Names that an enum does not have get the
/// values after its own.
void read_column(hid_t parent, const std::string& name, hid_t type, hsize_t rows, void* values);

}  // namespace foreshard::trace::hdf5
