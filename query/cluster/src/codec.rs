//! Serialises plans: Ballista's codecs, extended by the tables of stores and traces.

use std::sync::Arc;

use ballista_core::serde::{BallistaLogicalExtensionCodec, BallistaPhysicalExtensionCodec};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, TableReference};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Extension, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use tracepoint_query::distributed::{decode_scan, decode_table, encode_scan, encode_table};

/// Prefix of an encoded trace scan. No Ballista message begins with it: the lower three bits of the first byte are a field's wire type, and there is
/// no type 7.
const SCAN: &[u8] = b"\xFFscan of a trace\n";

/// The encoding of logical plans.
#[derive(Debug, Default)]
pub(crate) struct Codec(BallistaLogicalExtensionCodec);

impl LogicalExtensionCodec for Codec {
    fn try_decode(&self, buf: &[u8], inputs: &[LogicalPlan], ctx: &TaskContext) -> Result<Extension> {
        self.0.try_decode(buf, inputs, ctx)
    }

    fn try_encode(&self, node: &Extension, buf: &mut Vec<u8>) -> Result<()> {
        self.0.try_encode(node, buf)
    }

    fn try_decode_table_provider(
        &self,
        buf: &[u8],
        _: &TableReference,
        schema: SchemaRef,
        _: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        decode_table(buf, &schema)
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        match encode_table(&*table)? {
            Some(bytes) => buf.extend(bytes),
            None => self.0.try_encode_table_provider(name, table, buf)?,
        }
        Ok(())
    }
}

/// The encoding of physical plans.
#[derive(Debug, Default)]
pub(crate) struct PlanCodec(BallistaPhysicalExtensionCodec);

impl PhysicalExtensionCodec for PlanCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        ctx: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match buf.strip_prefix(SCAN) {
            Some(scan) => decode_scan(scan),
            None => self.0.try_decode(buf, inputs, ctx, converter),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let Some(scan) = encode_scan(&*node)? else { return self.0.try_encode(node, buf, converter) };
        buf.extend([SCAN, &scan].concat());
        Ok(())
    }
}
