#pragma once
#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "trace/hdf5.hpp"
#include "trace/names.hpp"

namespace foreshard::trace {

/// One column of a table whose rows are `Row`s: how it is stored and how it goes from and to a row.
template <class Row>
struct Field {
  hdf5::Column column;
  hdf5::Handle type;
  std::size_t size_bytes = 0;
  std::function<void(std::span<const Row>, std::byte*)> gather;   ///< rows -> values
  std::function<void(std::span<Row>, const std::byte*)> scatter;  ///< values -> rows
};

template <class Row>
using Fields = std::vector<Field<Row>>;

template <class T>
struct IsId : std::false_type {};
template <class Tag>
struct IsId<Id<Tag>> : std::true_type {};

/// How a member is stored: numbers as they are, enums and booleans by name, ids as i32 with −1 for none.
template <class T>
hdf5::Handle stored_type() {
  if constexpr (std::is_enum_v<T>)
    return hdf5::enum_type(names_of<T>());
  else if constexpr (std::is_same_v<T, bool>)
    return hdf5::bool_type();
  else if constexpr (IsId<T>::value)
    return hdf5::copy_type(H5T_NATIVE_INT32);
  else
    return hdf5::copy_type(hdf5::native<T>());
}

/// Throws LibraryError unless the byte at `value` is one of an enum's or of bool's values. Any number will do.
template <class T>
void expect_named(const std::byte* value, const std::string& column) {
  if constexpr (std::is_enum_v<T> || std::is_same_v<T, bool>) {
    std::size_t count = 2;
    if constexpr (std::is_enum_v<T>) count = names_of<T>().size();
    if (std::to_integer<std::size_t>(*value) >= count) throw LibraryError(column + " holds a value that has no name");
  }
}

/// The column of the member that `access(row)` refers to. Its width in memory is that of the stored type.
template <class Row, class Access>
Field<Row> field(hdf5::Column column, Access access) {
  using T = std::remove_cvref_t<std::invoke_result_t<Access, Row&>>;
  static_assert(!std::is_enum_v<T> || sizeof(T) == 1);
  return {column, stored_type<T>(), sizeof(T),
          [access](std::span<const Row> rows, std::byte* out) {
            for (const Row& row : rows) {
              std::memcpy(out, &access(row), sizeof(T));
              out += sizeof(T);
            }
          },
          [access, name = column.name](std::span<Row> rows, const std::byte* in) {
            for (Row& row : rows) {
              expect_named<T>(in, name);
              std::memcpy(&access(row), in, sizeof(T));
              in += sizeof(T);
            }
          }};
}

/// A column of text of at most `size_bytes` bytes; longer text is cut.
template <class Row, class Access>
Field<Row> text_field(hdf5::Column column, std::size_t size_bytes, Access access) {
  return {std::move(column), hdf5::text_type(size_bytes), size_bytes,
          [access, size_bytes](std::span<const Row> rows, std::byte* out) {
            std::memset(out, 0, rows.size() * size_bytes);
            for (const Row& row : rows) {
              const std::string& text = access(row);
              std::memcpy(out, text.data(), std::min(text.size(), size_bytes));
              out += size_bytes;
            }
          },
          [access, size_bytes](std::span<Row> rows, const std::byte* in) {
            for (Row& row : rows) {
              const char* text = reinterpret_cast<const char*>(in);
              access(row) = std::string(text, strnlen(text, size_bytes));
              in += size_bytes;
            }
          }};
}

/// A group of equally long columns that grows. Rows are kept in memory until `flush`.
template <class Row>
class Table {
 public:
  Table(hid_t parent, const std::string& name, Fields<Row> fields, hsize_t chunk_rows)
      : group_(hdf5::create_group(parent, name)), fields_(std::move(fields)) {
    for (const auto& f : fields_) columns_.emplace_back(group_.id(), f.column, f.type.id(), chunk_rows);
  }
  void append(const Row& row) { pending_.push_back(row); }
  std::size_t rows() const { return written_ + pending_.size(); }
  void flush() {
    for (std::size_t i = 0; i < fields_.size(); ++i) write(i);
    written_ += pending_.size();
    pending_.clear();
  }

 private:
  void write(std::size_t column) {
    values_.resize(pending_.size() * fields_[column].size_bytes);
    fields_[column].gather(pending_, values_.data());
    columns_[column].append(values_.data(), pending_.size());
  }

  hdf5::Handle group_;
  Fields<Row> fields_;
  std::vector<hdf5::Appender> columns_;
  std::vector<Row> pending_;
  std::vector<std::byte> values_;
  std::size_t written_ = 0;
};

/// Writes a table whose rows are all known.
template <class Row>
void write_table(hid_t parent, const std::string& name, Fields<Row> fields, std::span<const Row> rows) {
  const hsize_t chunk_rows = std::min<hsize_t>(std::max<hsize_t>(rows.size(), 1), 65536);
  Table<Row> table(parent, name, std::move(fields), chunk_rows);
  for (const Row& row : rows) table.append(row);
  table.flush();
}

/// Reads a table. Its columns must be equally long, else LibraryError.
template <class Row>
std::vector<Row> read_table(hid_t parent, const std::string& name, const Fields<Row>& fields) {
  const hdf5::Handle group = hdf5::open_group(parent, name);
  hsize_t count = hdf5::row_count(group.id(), fields.front().column.name);
  for (const auto& f : fields) {
    const hsize_t rows = hdf5::row_count(group.id(), f.column.name);
    if (rows != count) throw LibraryError(name + "/" + f.column.name + " is shorter or longer than its neighbours");
  }
  std::vector<Row> rows(count);
  std::vector<std::byte> values;
  for (const auto& f : fields) {
    values.resize(count * f.size_bytes);
    hdf5::read_column(group.id(), f.column.name, f.type.id(), count, values.data());
    f.scatter(rows, values.data());
  }
  return rows;
}

}  // namespace foreshard::trace
