#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/ids.hpp"
#include "trace/hdf5.hpp"
#include "trace/names.hpp"

namespace foreshard::trace {

/// One column of a table whose rows are structs in memory: which member it is, and how it is stored.
struct Field {
  hdf5::Column column;
  hdf5::Handle type;             ///< in the file and in memory
  std::size_t size_bytes = 0;    ///< of a value
  std::size_t offset_bytes = 0;  ///< of the member in its row
  std::size_t named_values = 0;  ///< of an enum or bool: how many there are; 0 if any value will do
  bool is_text = false;          ///< the member is a std::string
};

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

template <class T>
std::size_t named_values() {
  if constexpr (std::is_enum_v<T>) return names_of<T>().size();
  return std::is_same_v<T, bool> ? 2 : 0;
}

/// The columns of a table of `Row`s. Members are named on `row`, which is only there for that:
///   fields.add("kind", "1", "what is computed", fields.row.op.kind);
template <class Row>
class Fields {
 public:
  template <class T>
  void add(std::string name, const char* units, std::string long_name, const T& member_of_row) {
    static_assert(!std::is_enum_v<T> || sizeof(T) == 1);
    list_.push_back({.column = {std::move(name), units, std::move(long_name)},
                     .type = stored_type<T>(),
                     .size_bytes = sizeof(T),
                     .offset_bytes = offset_of(member_of_row),
                     .named_values = trace::named_values<T>()});
  }

  /// Text of at most `size_bytes` bytes; longer text is cut.
  void add_text(std::string name, const char* units, std::string long_name, std::size_t size_bytes,
                const std::string& member_of_row) {
    list_.push_back({.column = {std::move(name), units, std::move(long_name)},
                     .type = hdf5::text_type(size_bytes),
                     .size_bytes = size_bytes,
                     .offset_bytes = offset_of(member_of_row),
                     .is_text = true});
  }

  const std::vector<Field>& list() const { return list_; }

  Row row{};

 private:
  std::size_t offset_of(const auto& member) const {
    return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&member) -
                                    reinterpret_cast<const std::byte*>(&row));
  }

  std::vector<Field> list_;
};

/// `count` rows of `stride_bytes` each, in memory.
template <class Byte>
struct Rows {
  Byte* first = nullptr;
  std::size_t count = 0, stride_bytes = 0;
};

/// Copies a field out of rows: `values` has room for as many.
void gather(const Field& field, const Rows<const std::byte>& rows, std::byte* values);
/// Copies values into a field of rows. Throws LibraryError for an enum or bool whose value has no name.
void scatter(const Field& field, const std::byte* values, const Rows<std::byte>& rows);

/// A group of equally long columns that grows. Rows are kept in memory until `flush`.
template <class Row>
class Table {
 public:
  Table(hid_t parent, const std::string& name, Fields<Row> fields, hsize_t chunk_rows)
      : group_(hdf5::create_group(parent, name)), fields_(std::move(fields)) {
    for (const Field& f : fields_.list()) columns_.emplace_back(group_.id(), f.column, f.type.id(), chunk_rows);
  }
  void append(const Row& row) { pending_.push_back(row); }
  std::size_t rows() const { return written_ + pending_.size(); }
  void flush() {
    for (std::size_t i = 0; i < columns_.size(); ++i) write(i);
    written_ += pending_.size();
    pending_.clear();
  }

 private:
  void write(std::size_t column) {
    const Field& field = fields_.list()[column];
    values_.resize(pending_.size() * field.size_bytes);
    gather(field, {reinterpret_cast<const std::byte*>(pending_.data()), pending_.size(), sizeof(Row)}, values_.data());
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

/// How many rows a table has. Throws LibraryError if its columns are not equally long.
std::size_t table_rows(hid_t group, const std::string& name, const std::vector<Field>& fields);

/// Reads a table. Its columns must be equally long, else LibraryError.
template <class Row>
std::vector<Row> read_table(hid_t parent, const std::string& name, const Fields<Row>& fields) {
  const hdf5::Handle group = hdf5::open_group(parent, name);
  std::vector<Row> rows(table_rows(group.id(), name, fields.list()));
  std::vector<std::byte> values;
  for (const Field& field : fields.list()) {
    values.resize(rows.size() * field.size_bytes);
    hdf5::read_column(group.id(), field.column.name, field.type.id(), rows.size(), values.data());
    scatter(field, values.data(), {reinterpret_cast<std::byte*>(rows.data()), rows.size(), sizeof(Row)});
  }
  return rows;
}

}  // namespace foreshard::trace
