//! Columns of rows that are kept, and the types that they have in a batch.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder,
    TimestampMicrosecondBuilder, UInt16Builder, UInt64Builder,
};
use arrow_array::{Array as _, ArrayRef, ListArray, RecordBatch};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use netsniff_analysis::record::{FieldInfo, LogType, Scalar, Shape};

use crate::format::cells::{Cell, Cells};

/// The schema of a log: each column may be unset. Types are those that its tables have, as `format/parquet/columns.rs` gives
/// them; the metadata tells the type in Zeek's words, the unit, and what a column means.
#[must_use]
pub fn schema(log: &LogType) -> SchemaRef {
    let fields: Vec<_> = log.fields.iter().map(column).collect();
    let about = [("netsniff.log", log.path), ("netsniff.doc", log.doc.trim())];
    Arc::new(Schema::new(fields).with_metadata(metadata(&about)))
}

fn column(field: &FieldInfo) -> Field {
    let zeek_type = field.zeek_type.to_string();
    let mut about = vec![("netsniff.type", zeek_type.as_str())];
    if !field.unit.name().is_empty() {
        about.push(("netsniff.unit", field.unit.name()));
    }
    about.push(("netsniff.doc", field.doc.trim()));
    Field::new(field.name, data_type(field), true).with_metadata(metadata(&about))
}

fn metadata(about: &[(&str, &str)]) -> HashMap<String, String> {
    about.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn data_type(field: &FieldInfo) -> DataType {
    match field.zeek_type.shape {
        Shape::One => scalar(field.zeek_type.scalar),
        Shape::Set | Shape::Vector => DataType::List(element(field)),
    }
}

fn element(field: &FieldInfo) -> FieldRef {
    Arc::new(Field::new_list_field(scalar(field.zeek_type.scalar), true))
}

fn scalar(scalar: Scalar) -> DataType {
    match scalar {
        Scalar::Bool => DataType::Boolean,
        Scalar::Count => DataType::UInt64,
        Scalar::Int => DataType::Int64,
        Scalar::Port => DataType::UInt16,
        Scalar::Time => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        Scalar::Double | Scalar::Interval => DataType::Float64,
        Scalar::Addr | Scalar::Enum | Scalar::String => DataType::Utf8,
    }
}

const UTC: &str = "UTC";

/// Rows of one log, which become a batch.
#[derive(Debug)]
pub struct BatchBuilder {
    schema: SchemaRef,
    columns: Vec<Column>,
    rows: usize,
    /// Bytes of the cells of these rows.
    bytes: usize,
}

impl BatchBuilder {
    /// No rows of a log.
    #[must_use]
    pub fn new(log: &LogType) -> Self {
        let columns = log.fields.iter().map(Column::new).collect();
        Self { schema: schema(log), columns, rows: 0, bytes: 0 }
    }

    /// The schema of its batches.
    #[must_use]
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Takes a row as [`Format::Arrow`](crate::Format::Arrow) encodes it.
    pub fn push(&mut self, row: &[u8]) {
        let mut cells = Cells(row);
        for column in &mut self.columns {
            column.push(&mut cells);
        }
        self.rows += 1;
        self.bytes += row.len();
    }

    /// The rows that it has.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of memory that they take, not counting what the columns round up.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        // A column has a value for each row, set or not, of eight bytes at most without text.
        self.bytes + self.rows * self.columns.len() * size_of::<u64>()
    }

    /// The rows, of which there are none afterwards.
    ///
    /// # Errors
    ///
    /// Where they do not make a batch.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        (self.rows, self.bytes) = (0, 0);
        let columns = self.columns.iter_mut().map(Column::finish);
        RecordBatch::try_new(Arc::clone(&self.schema), columns.collect::<Result<_, _>>()?)
    }
}

#[derive(Debug)]
enum Column {
    One(Values),
    Many(List),
}

/// A column of sets or vectors.
#[derive(Debug)]
struct List {
    element: FieldRef,
    values: Values,
    /// How many values the row has; none where it is not set.
    lengths: Vec<usize>,
    set: NullBufferBuilder,
}

#[derive(Debug)]
enum Values {
    Bool(BooleanBuilder),
    Count(UInt64Builder),
    Int(Int64Builder),
    Port(UInt16Builder),
    Time(TimestampMicrosecondBuilder),
    Double(Float64Builder),
    Text(StringBuilder),
}

impl Column {
    fn new(field: &FieldInfo) -> Self {
        let values = match field.zeek_type.scalar {
            Scalar::Bool => Values::Bool(BooleanBuilder::new()),
            Scalar::Count => Values::Count(UInt64Builder::new()),
            Scalar::Int => Values::Int(Int64Builder::new()),
            Scalar::Port => Values::Port(UInt16Builder::new()),
            Scalar::Time => Values::Time(TimestampMicrosecondBuilder::new().with_timezone(UTC)),
            Scalar::Double | Scalar::Interval => Values::Double(Float64Builder::new()),
            Scalar::Addr | Scalar::Enum | Scalar::String => Values::Text(StringBuilder::new()),
        };
        match field.zeek_type.shape {
            Shape::One => Self::One(values),
            Shape::Set | Shape::Vector => Self::Many(List {
                element: element(field),
                values,
                lengths: Vec::new(),
                set: NullBufferBuilder::new(0),
            }),
        }
    }

    /// Takes its cell of a row, with those of its elements.
    #[inline]
    fn push(&mut self, cells: &mut Cells<'_>) {
        let cell = cells.cell();
        match (self, cell) {
            (Self::One(values), cell) => values.push(cell),
            (Self::Many(list), Cell::List(count)) => {
                (0..count).for_each(|_| list.values.push(cells.cell()));
                list.lengths.push(usize::try_from(count).unwrap_or(usize::MAX));
                list.set.append_non_null();
            }
            (Self::Many(list), _) => {
                list.lengths.push(0);
                list.set.append_null();
            }
        }
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let List { element, values, lengths, set } = match self {
            Self::One(values) => return Ok(values.builder().finish()),
            Self::Many(list) => list,
        };
        let values = values.builder().finish();
        let counted = lengths.iter().try_fold(0_usize, |sum, more| sum.checked_add(*more));
        // A list is made of its lengths: they have to be those of the values.
        if counted != Some(values.len()) || i32::try_from(values.len()).is_err() {
            let said = "a column has other values than its rows tell".to_owned();
            return Err(ArrowError::InvalidArgumentError(said));
        }
        let offsets = OffsetBuffer::from_lengths(core::mem::take(lengths));
        let list = ListArray::try_new(Arc::clone(element), offsets, values, set.finish())?;
        Ok(Arc::new(list))
    }
}

impl Values {
    #[inline]
    fn push(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Self::Bool(values), Cell::Bool(value)) => values.append_value(value),
            (Self::Count(values), Cell::Unsigned(value)) => values.append_value(value),
            (Self::Int(values), Cell::Signed(value)) => values.append_value(value),
            (Self::Port(values), Cell::Unsigned(value)) => {
                values.append_option(u16::try_from(value).ok());
            }
            (Self::Time(values), Cell::Signed(value)) => values.append_value(value),
            (Self::Double(values), Cell::Double(value)) => values.append_value(value),
            (Self::Text(values), Cell::Text(text)) => values.append_value(utf8(text)),
            (values, _) => values.append_null(),
        }
    }

    fn append_null(&mut self) {
        match self {
            Self::Bool(values) => values.append_null(),
            Self::Count(values) => values.append_null(),
            Self::Int(values) => values.append_null(),
            Self::Port(values) => values.append_null(),
            Self::Time(values) => values.append_null(),
            Self::Double(values) => values.append_null(),
            Self::Text(values) => values.append_null(),
        }
    }

    fn builder(&mut self) -> &mut dyn ArrayBuilder {
        match self {
            Self::Bool(values) => values,
            Self::Count(values) => values,
            Self::Int(values) => values,
            Self::Port(values) => values,
            Self::Time(values) => values,
            Self::Double(values) => values,
            Self::Text(values) => values,
        }
    }
}

/// Text of a cell, which is UTF-8: what is none was escaped.
fn utf8(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}
