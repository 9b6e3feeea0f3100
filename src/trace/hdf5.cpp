#include "trace/hdf5.hpp"

#include <fmt/format.h>

#include <memory>

#include "base/error.hpp"

namespace foreshard::trace::hdf5 {
namespace {

herr_t keep_first_reason(unsigned depth, const H5E_error2_t* error, void* reason) {
  if (depth == 0) *static_cast<std::string*>(reason) = error->desc ? error->desc : "";
  return 0;
}

/// HDF5's innermost explanation of what failed last.
std::string reason() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first_reason, &text);
  return text.empty() ? "no reason given" : text;
}

void quiet() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

Handle property_list(hid_t kind) { return {H5Pcreate(kind), H5Pclose, "H5Pcreate", "a property list"}; }

Handle scalar_space() { return {H5Screate(H5S_SCALAR), H5Sclose, "H5Screate", "a scalar"}; }

Handle open_dataset(hid_t parent, const std::string& name) {
  return {H5Dopen2(parent, name.c_str(), H5P_DEFAULT), H5Dclose, "H5Dopen2", name};
}

Handle open_attribute(hid_t object, const char* name) {
  return {H5Aopen(object, name, H5P_DEFAULT), H5Aclose, "H5Aopen", name};
}

Handle space_of(hid_t dataset, const std::string& name) {
  return {H5Dget_space(dataset), H5Sclose, "H5Dget_space", name};
}

void write_value(hid_t object, const char* name, hid_t type, const void* value) {
  const Handle space = scalar_space();
  const Handle attribute(H5Acreate2(object, name, type, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose, "H5Acreate2",
                         name);
  checked(H5Awrite(attribute.id(), type, value), "H5Awrite", name);
}

void describe(hid_t dataset, const Column& column) {
  write_attribute(dataset, "units", column.units);
  write_attribute(dataset, "long_name", column.long_name);
}

/// A type of 8 bits with one name more, valued as the next.
void add_name(hid_t type, const char* name) {
  const auto value = static_cast<std::uint8_t>(H5Tget_nmembers(type));
  checked(H5Tenum_insert(type, name, &value), "H5Tenum_insert", name);
}

/// `type`, and if it is an enum the names besides that the dataset has: a newer minor version may have added some.
Handle with_names_of(hid_t dataset, hid_t type) {
  Handle all = copy_type(type);
  const Handle stored(H5Dget_type(dataset), H5Tclose, "H5Dget_type", "a column");
  if (H5Tget_class(type) != H5T_ENUM || H5Tget_class(stored.id()) != H5T_ENUM) return all;
  for (int i = 0; i < H5Tget_nmembers(stored.id()); ++i) {
    const std::unique_ptr<char, herr_t (*)(void*)> name(H5Tget_member_name(stored.id(), static_cast<unsigned>(i)),
                                                        H5free_memory);
    if (H5Tget_member_index(type, name.get()) < 0) add_name(all.id(), name.get());
  }
  return all;
}

Handle growing_chunks(hsize_t chunk_rows) {
  Handle properties = property_list(H5P_DATASET_CREATE);
  checked(H5Pset_chunk(properties.id(), 1, &chunk_rows), "H5Pset_chunk", "a column");
  checked(H5Pset_shuffle(properties.id()), "H5Pset_shuffle", "a column");
  checked(H5Pset_deflate(properties.id(), 1), "H5Pset_deflate", "a column");
  return properties;
}

Handle select_rows(hid_t dataset, const std::string& name, hsize_t first, hsize_t rows) {
  Handle space = space_of(dataset, name);
  checked(H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, &first, nullptr, &rows, nullptr), "H5Sselect_hyperslab",
          name);
  return space;
}

Handle row_space(hsize_t rows) { return {H5Screate_simple(1, &rows, nullptr), H5Sclose, "H5Screate_simple", "rows"}; }

}  // namespace

Handle::Handle(hid_t id, Close release, const char* call, std::string_view what) : id_(id), close_(release) {
  if (id < 0) throw LibraryError(fmt::format("{} failed on {}: {}", call, what, reason()));
}

void Handle::close(std::string_view what) {
  const hid_t id = std::exchange(id_, H5I_INVALID_HID);
  if (id >= 0) checked(close_(id), "closing", what);
}

int checked(int status, const char* call, std::string_view what) {
  if (status < 0) throw LibraryError(fmt::format("{} failed on {}: {}", call, what, reason()));
  return status;
}

Handle copy_type(hid_t type) { return {H5Tcopy(type), H5Tclose, "H5Tcopy", "a type"}; }

Handle enum_type(std::span<const std::string_view> names) {
  Handle type(H5Tenum_create(H5T_NATIVE_UINT8), H5Tclose, "H5Tenum_create", "an enum");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto value = static_cast<std::uint8_t>(i);
    checked(H5Tenum_insert(type.id(), std::string(names[i]).c_str(), &value), "H5Tenum_insert", names[i]);
  }
  return type;
}

Handle bool_type() {
  Handle type(H5Tenum_create(H5T_NATIVE_INT8), H5Tclose, "H5Tenum_create", "bool");
  const std::int8_t no = 0, yes = 1;
  checked(H5Tenum_insert(type.id(), "FALSE", &no), "H5Tenum_insert", "FALSE");
  checked(H5Tenum_insert(type.id(), "TRUE", &yes), "H5Tenum_insert", "TRUE");
  return type;
}

Handle text_type(std::size_t size) {
  Handle type = copy_type(H5T_C_S1);
  checked(H5Tset_size(type.id(), size), "H5Tset_size", "text");
  checked(H5Tset_cset(type.id(), H5T_CSET_UTF8), "H5Tset_cset", "text");
  checked(H5Tset_strpad(type.id(), H5T_STR_NULLPAD), "H5Tset_strpad", "text");
  return type;
}

Handle create_file(const std::string& path) {
  quiet();
  const Handle access = property_list(H5P_FILE_ACCESS);
  checked(H5Pset_libver_bounds(access.id(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V110), "H5Pset_libver_bounds", path);
  return {H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.id()), H5Fclose, "H5Fcreate", path};
}

Handle open_file(const std::string& path) {
  quiet();
  const Handle access = property_list(H5P_FILE_ACCESS);
  checked(H5Pset_file_locking(access.id(), false, true), "H5Pset_file_locking", path);
  return {H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose, "H5Fopen", path};
}

Handle create_group(hid_t parent, const std::string& name) {
  return {H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose, "H5Gcreate2", name};
}

Handle open_group(hid_t parent, const std::string& name) {
  return {H5Gopen2(parent, name.c_str(), H5P_DEFAULT), H5Gclose, "H5Gopen2", name};
}

bool has(hid_t parent, const std::string& name) { return H5Lexists(parent, name.c_str(), H5P_DEFAULT) > 0; }

bool has_attribute(hid_t object, const char* name) { return H5Aexists(object, name) > 0; }

void write_attribute(hid_t object, const char* name, std::string_view text) {
  Handle type = text_type(H5T_VARIABLE);
  checked(H5Tset_strpad(type.id(), H5T_STR_NULLTERM), "H5Tset_strpad", name);
  const std::string copy(text);
  const char* start = copy.c_str();
  write_value(object, name, type.id(), &start);
}

void write_attribute(hid_t object, const char* name, const char* text) {
  write_attribute(object, name, std::string_view(text));
}

void write_attribute(hid_t object, const char* name, std::int64_t value) {
  write_value(object, name, H5T_NATIVE_INT64, &value);
}

void rewrite_attribute(hid_t object, const char* name, std::int64_t value) {
  checked(H5Awrite(open_attribute(object, name).id(), H5T_NATIVE_INT64, &value), "H5Awrite", name);
}

std::string read_text_attribute(hid_t object, const char* name) {
  const Handle attribute = open_attribute(object, name);
  Handle type = text_type(H5T_VARIABLE);
  checked(H5Tset_strpad(type.id(), H5T_STR_NULLTERM), "H5Tset_strpad", name);
  char* text = nullptr;
  checked(H5Aread(attribute.id(), type.id(), &text), "H5Aread", name);
  std::string copy(text ? text : "");
  H5free_memory(text);
  return copy;
}

std::int64_t read_integer_attribute(hid_t object, const char* name) {
  const Handle attribute = open_attribute(object, name);
  std::int64_t value = 0;
  checked(H5Aread(attribute.id(), H5T_NATIVE_INT64, &value), "H5Aread", name);
  return value;
}

void write_scalar(hid_t parent, const Column& column, hid_t type, const void* value) {
  const Handle space = scalar_space();
  const Handle dataset(H5Dcreate2(parent, column.name.c_str(), type, space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                       H5Dclose, "H5Dcreate2", column.name);
  describe(dataset.id(), column);
  checked(H5Dwrite(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value), "H5Dwrite", column.name);
}

void read_scalar(hid_t parent, const std::string& name, hid_t type, void* value) {
  const Handle dataset = open_dataset(parent, name);
  const Handle space = space_of(dataset.id(), name);
  if (H5Sget_simple_extent_npoints(space.id()) != 1) throw LibraryError(fmt::format("{} is not a single value", name));
  checked(H5Dread(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value), "H5Dread", name);
}

Appender::Appender(hid_t parent, const Column& column, hid_t type, hsize_t chunk_rows)
    : name_(column.name), type_(type) {
  const hsize_t none = 0, unlimited = H5S_UNLIMITED;
  const Handle space(H5Screate_simple(1, &none, &unlimited), H5Sclose, "H5Screate_simple", name_);
  const Handle properties = growing_chunks(chunk_rows);
  dataset_ = Handle(H5Dcreate2(parent, name_.c_str(), type, space.id(), H5P_DEFAULT, properties.id(), H5P_DEFAULT),
                    H5Dclose, "H5Dcreate2", name_);
  describe(dataset_.id(), column);
}

void Appender::append(const void* values, hsize_t rows) {
  if (rows == 0) return;
  const hsize_t total = rows_ + rows;
  checked(H5Dset_extent(dataset_.id(), &total), "H5Dset_extent", name_);
  const Handle in_file = select_rows(dataset_.id(), name_, rows_, rows);
  const Handle in_memory = row_space(rows);
  checked(H5Dwrite(dataset_.id(), type_, in_memory.id(), in_file.id(), H5P_DEFAULT, values), "H5Dwrite", name_);
  rows_ = total;
}

hsize_t row_count(hid_t parent, const std::string& name) {
  const Handle dataset = open_dataset(parent, name);
  const Handle space = space_of(dataset.id(), name);
  hsize_t rows = 0;
  if (H5Sget_simple_extent_ndims(space.id()) != 1) throw LibraryError(fmt::format("{} is not one column", name));
  checked(H5Sget_simple_extent_dims(space.id(), &rows, nullptr), "H5Sget_simple_extent_dims", name);
  return rows;
}

void read_column(hid_t parent, const std::string& name, hid_t type, hsize_t rows, void* values) {
  if (rows == 0) return;
  const Handle dataset = open_dataset(parent, name);
  const Handle known = with_names_of(dataset.id(), type);
  const Handle in_file = select_rows(dataset.id(), name, 0, rows);
  const Handle in_memory = row_space(rows);
  checked(H5Dread(dataset.id(), known.id(), in_memory.id(), in_file.id(), H5P_DEFAULT, values), "H5Dread", name);
}

}  // namespace foreshard::trace::hdf5
