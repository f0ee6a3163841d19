//! The commands of Flight SQL.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::metadata::{SqlInfoData, SqlInfoDataBuilder};
use arrow_flight::sql::server::FlightSqlService;
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult,
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables,
    CommandPreparedStatementQuery, CommandStatementQuery, ProstMessageExt, SqlInfo, TicketStatementQuery,
};
use arrow_flight::{Action, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest, HandshakeResponse};
use arrow_flight::{IpcMessage, SchemaAsIpc, Ticket};
use futures::stream::{StreamExt, once};
use prost::Message;
use prost::bytes::Bytes;
use tokio::sync::Semaphore;
use tonic::metadata::MetadataValue;
use tonic::{Request, Response, Status, Streaming};
use tracepoint_query::arrow::array::RecordBatch;
use tracepoint_query::arrow::datatypes::{Schema, SchemaRef};
use tracepoint_query::arrow::error::ArrowError;
use tracepoint_query::arrow::ipc::writer::IpcWriteOptions;

use crate::access::given;
use crate::answers::{columns, encoded, json, rows};
use crate::error::status;
use crate::stores::Stores;

/// Maximum time that a query waits for a free slot.
const PATIENCE: Duration = Duration::from_mins(1);
/// The catalog and schema of all tables. Queries may omit them.
const CATALOG: &str = "datafusion";
const SCHEMA: &str = "public";
/// The type of all tables.
const TABLE: &str = "TABLE";

static INFO: LazyLock<Result<SqlInfoData, String>> = LazyLock::new(|| {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "tracectl query");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, "1.3");
    info.append(SqlInfo::FlightSqlServerReadOnly, true);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    info.append(SqlInfo::FlightSqlServerCancel, false);
    info.append(SqlInfo::FlightSqlServerBulkIngestion, false);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    info.append(SqlInfo::SqlDdlCatalog, false);
    info.append(SqlInfo::SqlDdlSchema, false);
    info.append(SqlInfo::SqlDdlTable, false);
    info.build().map_err(|error| error.to_string())
});

fn info() -> Result<&'static SqlInfoData, Status> {
    INFO.as_ref().map_err(|error| Status::internal(error.as_str()))
}

/// Runs queries for clients.
pub(crate) struct Service {
    pub(crate) stores: Stores,
    /// One permit for each query that may run at the same time.
    pub(crate) slots: Arc<Semaphore>,
}

type Rows = Response<<Service as FlightService>::DoGetStream>;

impl Service {
    /// Describes a query: its columns, and notes about possibly missing data.
    async fn describe(&self, sql: &str, ticket: Bytes, request: Request<FlightDescriptor>) -> FlightResult {
        let engine = self.stores.engine().await.map_err(|error| status(&error))?;
        let plan = engine.describe(sql).await.map_err(|error| status(&error))?;
        let schema = columns(&plan.columns, &plan.missing.notes);
        let mut description = described(&schema, ticket, request)?;
        description.get_mut().app_metadata = json(&plan.missing.notes).into();
        Ok(description)
    }

    /// Runs a query.
    async fn run(&self, sql: &str) -> Result<Rows, Status> {
        let slot = tokio::time::timeout(PATIENCE, Arc::clone(&self.slots).acquire_owned()).await;
        let Ok(Ok(slot)) = slot else {
            let text = "as many queries run as the server allows: repeat the query later, or have it allow more by `--queries`";
            return Err(Status::resource_exhausted(text));
        };
        let engine = self.stores.engine().await.map_err(|error| status(&error))?;
        let answer = engine.query(sql).await.map_err(|error| status(&error))?;
        let missing = engine.missing(&answer).await.map_err(|error| status(&error))?;
        let schema = columns(&answer.schema(), &missing.notes);
        Ok(Response::new(rows(engine, answer, schema, slot)))
    }
}

type FlightResult = Result<Response<FlightInfo>, Status>;

fn arrow(error: &ArrowError) -> Status {
    Status::internal(error.to_string())
}

/// Decodes the text of a query from a ticket.
fn text(bytes: &Bytes) -> Result<&str, Status> {
    std::str::from_utf8(bytes).map_err(|_| Status::invalid_argument("a statement is no UTF-8"))
}

/// The description of a result that this ticket fetches.
fn described(schema: &Schema, ticket: Bytes, request: Request<FlightDescriptor>) -> FlightResult {
    let info = FlightInfo::new().try_with_schema(schema).map_err(|error| arrow(&error))?;
    let endpoint = FlightEndpoint::new().with_ticket(Ticket { ticket });
    Ok(Response::new(info.with_endpoint(endpoint).with_descriptor(request.into_inner())))
}

/// A response of one batch.
fn single(batch: Result<RecordBatch, arrow_flight::error::FlightError>, schema: SchemaRef) -> Rows {
    Response::new(encoded(schema, once(async { batch })).boxed())
}

#[tonic::async_trait]
impl FlightSqlService for Service {
    type FlightService = Self;

    /// Answers a login with the token: the user's password.
    async fn do_handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<<Self as FlightService>::HandshakeStream>, Status> {
        let token = given(request.metadata()).unwrap_or_default();
        let header = MetadataValue::try_from(format!("Bearer {token}"));
        let answer = HandshakeResponse { protocol_version: 0, payload: token.into() };
        let mut response: Response<<Self as FlightService>::HandshakeStream> =
            Response::new(once(async { Ok(answer) }).boxed());
        let header = header.map_err(|_| Status::invalid_argument("the token is no header"))?;
        response.metadata_mut().insert("authorization", header);
        Ok(response)
    }

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> FlightResult {
        let ticket = TicketStatementQuery { statement_handle: query.query.clone().into() };
        self.describe(&query.query, ticket.as_any().encode_to_vec().into(), request).await
    }

    async fn do_get_statement(&self, ticket: TicketStatementQuery, _: Request<Ticket>) -> Result<Rows, Status> {
        self.run(text(&ticket.statement_handle)?).await
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        _: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let engine = self.stores.engine().await.map_err(|error| status(&error))?;
        let plan = engine.describe(&query.query).await.map_err(|error| status(&error))?;
        let bytes = |schema: &Schema| -> Result<Bytes, Status> {
            let message: Result<IpcMessage, ArrowError> =
                SchemaAsIpc::new(schema, &IpcWriteOptions::default()).try_into();
            let IpcMessage(bytes) = message.map_err(|error| arrow(&error))?;
            Ok(bytes)
        };
        Ok(ActionCreatePreparedStatementResult {
            prepared_statement_handle: query.query.into(),
            dataset_schema: bytes(&columns(&plan.columns, &plan.missing.notes))?,
            parameter_schema: bytes(&Schema::empty())?,
        })
    }

    async fn do_action_close_prepared_statement(
        &self,
        _: ActionClosePreparedStatementRequest,
        _: Request<Action>,
    ) -> Result<(), Status> {
        Ok(())
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> FlightResult {
        let sql = text(&query.prepared_statement_handle)?;
        self.describe(sql, query.as_any().encode_to_vec().into(), request).await
    }

    async fn do_get_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        _: Request<Ticket>,
    ) -> Result<Rows, Status> {
        self.run(text(&query.prepared_statement_handle)?).await
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> FlightResult {
        let ticket = query.as_any().encode_to_vec().into();
        described(&query.into_builder().schema(), ticket, request)
    }

    async fn do_get_catalogs(&self, query: CommandGetCatalogs, _: Request<Ticket>) -> Result<Rows, Status> {
        let mut catalogs = query.into_builder();
        catalogs.append(CATALOG);
        let schema = catalogs.schema();
        Ok(single(catalogs.build(), schema))
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> FlightResult {
        let ticket = query.as_any().encode_to_vec().into();
        described(&query.into_builder().schema(), ticket, request)
    }

    async fn do_get_schemas(&self, query: CommandGetDbSchemas, _: Request<Ticket>) -> Result<Rows, Status> {
        let mut schemas = query.into_builder();
        schemas.append(CATALOG, SCHEMA);
        let schema = schemas.schema();
        Ok(single(schemas.build(), schema))
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> FlightResult {
        let ticket = query.as_any().encode_to_vec().into();
        described(&query.into_builder().schema(), ticket, request)
    }

    async fn do_get_tables(&self, query: CommandGetTables, _: Request<Ticket>) -> Result<Rows, Status> {
        let engine = self.stores.engine().await.map_err(|error| status(&error))?;
        let mut tables = query.into_builder();
        let schema = tables.schema();
        for table in engine.tables().await.map_err(|error| status(&error))? {
            let columns = columns(&table.columns, &[]);
            tables.append(CATALOG, SCHEMA, &table.name, TABLE, &columns)?;
        }
        Ok(single(tables.build(), schema))
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> FlightResult {
        let ticket = query.as_any().encode_to_vec().into();
        described(&query.into_builder().schema(), ticket, request)
    }

    async fn do_get_table_types(&self, query: CommandGetTableTypes, _: Request<Ticket>) -> Result<Rows, Status> {
        let mut types = query.into_builder();
        types.append(TABLE);
        let schema = types.schema();
        Ok(single(types.build(), schema))
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> FlightResult {
        let ticket = query.as_any().encode_to_vec().into();
        described(&query.into_builder(info()?).schema(), ticket, request)
    }

    async fn do_get_sql_info(&self, query: CommandGetSqlInfo, _: Request<Ticket>) -> Result<Rows, Status> {
        let info = query.into_builder(info()?);
        let schema = info.schema();
        Ok(single(info.build(), schema))
    }

    /// Does nothing: the information about the server is fixed.
    async fn register_sql_info(&self, _: i32, _: &SqlInfo) {}
}
