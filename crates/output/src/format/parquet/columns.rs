//! Columns of rows that are kept, and the types that they have in a file.

use std::sync::Arc;

use bytes::Bytes;
use netsniff_analysis::record::{FieldInfo, LogType, Scalar, Shape};
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use crate::format::cells::{Cell, Cells};

/// The schema of a log: each column may be unset.
///
/// Counts are unsigned; a point in time is one of UTC in microseconds, and a span of time a number of seconds, as in the other
/// formats; addresses, words and text are UTF-8.
pub(super) fn schema(log: &LogType) -> Result<TypePtr> {
    let fields: Result<Vec<_>> = log.fields.iter().map(column).collect();
    Type::group_type_builder(log.path).with_fields(fields?).build().map(Arc::new)
}

/// A column, which is a list in three levels where it has many values (Parquet's `LogicalTypes`, "Lists").
fn column(field: &FieldInfo) -> Result<TypePtr> {
    if field.zeek_type.shape == Shape::One {
        return leaf(field, field.name);
    }
    let list = Type::group_type_builder("list").with_repetition(Repetition::REPEATED);
    let list = list.with_fields(vec![leaf(field, "element")?]).build()?;
    let all = Type::group_type_builder(field.name).with_repetition(Repetition::OPTIONAL);
    let all = all.with_logical_type(Some(LogicalType::List)).with_fields(vec![Arc::new(list)]);
    all.build().map(Arc::new)
}

fn leaf(field: &FieldInfo, name: &str) -> Result<TypePtr> {
    let (physical, logical) = match field.zeek_type.scalar {
        Scalar::Bool => (Physical::BOOLEAN, None),
        Scalar::Count => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Scalar::Int => (Physical::INT64, None),
        Scalar::Port => (Physical::INT32, Some(LogicalType::integer(16, false))),
        Scalar::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
        Scalar::Double | Scalar::Interval => (Physical::DOUBLE, None),
        Scalar::Addr | Scalar::Enum | Scalar::String => {
            (Physical::BYTE_ARRAY, Some(LogicalType::String))
        }
    };
    let leaf = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
    leaf.with_logical_type(logical).build().map(Arc::new)
}

/// The path of the values of a column.
pub(super) fn path(field: &FieldInfo) -> ColumnPath {
    let parts: &[&str] = match field.zeek_type.shape {
        Shape::One => &[field.name],
        Shape::Set | Shape::Vector => &[field.name, "list", "element"],
    };
    ColumnPath::new(parts.iter().map(|&part| part.to_owned()).collect())
}

/// Whether rows are looked up by single values of a column, which a Bloom filter then answers for a row group.
pub(super) fn is_looked_up(field: &FieldInfo) -> bool {
    let last = field.name.rsplit('.').next().unwrap_or_default();
    field.zeek_type.scalar == Scalar::Addr
        || matches!(last, "uid" | "uids" | "fuid" | "fuids" | "community_id")
}

/// Whether values of a column are often the same, for which a dictionary serves.
pub(super) fn repeats(field: &FieldInfo) -> bool {
    let is_own = matches!(field.name, "uid" | "fuid" | "community_id");
    let is_number =
        matches!(field.zeek_type.scalar, Scalar::Time | Scalar::Interval | Scalar::Double);
    !is_own && !is_number
}

/// The values of a column for the rows that are kept.
pub(super) struct Column {
    is_list: bool,
    values: Values,
    /// For each value, and each row without one: what of it is set (Dremel's definition level).
    definition: Vec<i16>,
    /// For each of these: 1 where it goes on with the list before (repetition level).
    repetition: Vec<i16>,
}

enum Values {
    Bool(Vec<bool>),
    Short(Vec<i32>),
    Long(Vec<i64>),
    Double(Vec<f64>),
    Text { bytes: Vec<u8>, ends: Vec<usize> },
}

impl Column {
    pub(super) fn new(field: &FieldInfo) -> Self {
        let values = match field.zeek_type.scalar {
            Scalar::Bool => Values::Bool(Vec::new()),
            Scalar::Port => Values::Short(Vec::new()),
            Scalar::Count | Scalar::Int | Scalar::Time => Values::Long(Vec::new()),
            Scalar::Double | Scalar::Interval => Values::Double(Vec::new()),
            Scalar::Addr | Scalar::Enum | Scalar::String => {
                Values::Text { bytes: Vec::new(), ends: Vec::new() }
            }
        };
        let is_list = field.zeek_type.shape != Shape::One;
        Self { is_list, values, definition: Vec::new(), repetition: Vec::new() }
    }

    /// Takes its cell of a row, with those of its elements.
    #[inline]
    pub(super) fn push(&mut self, cells: &mut Cells<'_>) {
        let cell = cells.cell();
        if !self.is_list {
            let is_set = self.values.push(cell);
            return self.definition.push(is_set.into());
        }
        let Cell::List(count) = cell else {
            self.definition.push(0);
            return self.repetition.push(0);
        };
        if count == 0 {
            self.definition.push(1);
            self.repetition.push(0);
        }
        for index in 0..count {
            let is_set = self.values.push(cells.cell());
            self.definition.push(2 + i16::from(is_set));
            self.repetition.push((index > 0).into());
        }
    }

    /// Writes its values.
    pub(super) fn write(&mut self, column: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let definition = Some(self.definition.as_slice());
        let repetition = self.is_list.then_some(self.repetition.as_slice());
        let written = match &mut self.values {
            Values::Bool(values) => {
                column.typed::<BoolType>().write_batch(values, definition, repetition)
            }
            Values::Short(values) => {
                column.typed::<Int32Type>().write_batch(values, definition, repetition)
            }
            Values::Long(values) => {
                column.typed::<Int64Type>().write_batch(values, definition, repetition)
            }
            Values::Double(values) => {
                column.typed::<DoubleType>().write_batch(values, definition, repetition)
            }
            Values::Text { bytes, ends } => {
                let texts = texts(core::mem::take(bytes), ends);
                column.typed::<ByteArrayType>().write_batch(&texts, definition, repetition)
            }
        };
        match written? {
            all if all == self.values.count() => Ok(()),
            _ => Err(ParquetError::General("a column has other values than rows".to_owned())),
        }
    }

    /// Forgets its values, and gives their memory back: logs are many, and most have rows at times alone.
    pub(super) fn clear(&mut self) {
        self.definition = Vec::new();
        self.repetition = Vec::new();
        match &mut self.values {
            Values::Bool(values) => *values = Vec::new(),
            Values::Short(values) => *values = Vec::new(),
            Values::Long(values) => *values = Vec::new(),
            Values::Double(values) => *values = Vec::new(),
            Values::Text { bytes, ends } => (*bytes, *ends) = (Vec::new(), Vec::new()),
        }
    }

    /// Bytes of memory that its values take.
    pub(super) fn heap_bytes(&self) -> usize {
        let levels = self.definition.capacity() + self.repetition.capacity();
        let values = match &self.values {
            Values::Bool(values) => values.capacity(),
            Values::Short(values) => values.capacity() * size_of::<i32>(),
            Values::Long(values) => values.capacity() * size_of::<i64>(),
            Values::Double(values) => values.capacity() * size_of::<f64>(),
            Values::Text { bytes, ends } => bytes.capacity() + ends.capacity() * size_of::<usize>(),
        };
        levels * size_of::<i16>() + values
    }
}

impl Values {
    /// Takes a value, and tells whether there is one.
    #[inline]
    fn push(&mut self, cell: Cell<'_>) -> bool {
        match (self, cell) {
            (Self::Bool(values), Cell::Bool(value)) => values.push(value),
            (Self::Short(values), Cell::Unsigned(value)) => values.push(value as i32),
            // Of the same bits: the logical type says that it is unsigned.
            (Self::Long(values), Cell::Unsigned(value)) => values.push(value.cast_signed()),
            (Self::Long(values), Cell::Signed(value)) => values.push(value),
            (Self::Double(values), Cell::Double(value)) => values.push(value),
            (Self::Text { bytes, ends }, Cell::Text(text)) => {
                bytes.extend_from_slice(text);
                ends.push(bytes.len());
            }
            _ => return false,
        }
        true
    }

    fn count(&self) -> usize {
        match self {
            Self::Bool(values) => values.len(),
            Self::Short(values) => values.len(),
            Self::Long(values) => values.len(),
            Self::Double(values) => values.len(),
            Self::Text { ends, .. } => ends.len(),
        }
    }
}

/// The texts of a column, which share their bytes.
fn texts(bytes: Vec<u8>, ends: &[usize]) -> Vec<ByteArray> {
    let bytes = Bytes::from(bytes);
    let mut start = 0;
    let text =
        |&end: &usize| ByteArray::from(bytes.slice(core::mem::replace(&mut start, end)..end));
    ends.iter().map(text).collect()
}
