//! Answers as streams: schemas with notes about missing data, and rows.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_flight::FlightData;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use futures::stream::{BoxStream, Stream, StreamExt, TryStreamExt, unfold};
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;
use tracepoint_query::arrow::array::RecordBatch;
use tracepoint_query::arrow::compute::cast;
use tracepoint_query::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tracepoint_query::{Answer, Engine};

use crate::error::status;

/// Key in the metadata of an answer's schema: a JSON list of sentences about possibly missing data, empty if no data is known to be missing.
pub const MISSING: &str = "tracepoint.missing";

/// The columns of an answer as sent to clients: views of texts are replaced by plain texts, because many clients do not support views.
pub(crate) fn columns(schema: &SchemaRef, missing: &[String]) -> SchemaRef {
    let plain = |field: &Arc<Field>| {
        let ty = match field.data_type() {
            DataType::Utf8View => DataType::Utf8,
            DataType::BinaryView => DataType::Binary,
            other => other.clone(),
        };
        field.as_ref().clone().with_data_type(ty)
    };
    let fields: Vec<_> = schema.fields().iter().map(plain).collect();
    let missing = HashMap::from([(MISSING.to_owned(), json(missing))]);
    Arc::new(Schema::new_with_metadata(fields, missing))
}

/// Formats texts as a JSON list.
pub(crate) fn json(texts: &[String]) -> String {
    serde_json::Value::from(texts).to_string()
}

/// Streams the rows of an answer. The permit is released once all rows are sent or the client has disconnected.
pub(crate) fn rows(
    engine: Arc<Engine>,
    answer: Answer,
    schema: SchemaRef,
    permit: OwnedSemaphorePermit,
) -> BoxStream<'static, Result<FlightData, Status>> {
    let columns = Arc::clone(&schema);
    // Keep the engine and the permit until the end: the answer reads the engine's files.
    let batches = unfold((answer, engine, permit), move |(mut answer, engine, permit)| {
        let columns = Arc::clone(&columns);
        async move {
            let next = match answer.next().await {
                Ok(next) => sent(&next?, &columns),
                Err(error) => Err(status(&error).into()),
            };
            Some((next, (answer, engine, permit)))
        }
    });
    encoded(schema, batches).boxed()
}

fn sent(batch: &RecordBatch, columns: &SchemaRef) -> Result<RecordBatch, FlightError> {
    let arrays = batch.columns().iter().zip(columns.fields()).map(|(array, field)| cast(array, field.data_type()));
    Ok(RecordBatch::try_new(Arc::clone(columns), arrays.collect::<Result<_, _>>()?)?)
}

/// Encodes a schema and the batches after it as messages.
pub(crate) fn encoded(
    schema: SchemaRef,
    batches: impl Stream<Item = Result<RecordBatch, FlightError>> + Send + 'static,
) -> impl Stream<Item = Result<FlightData, Status>> + Send {
    FlightDataEncoderBuilder::new().with_schema(schema).build(batches).map_err(Status::from)
}
