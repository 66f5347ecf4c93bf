//! A server on rmcp over standard input and output, for tests of the bridge. The one beside
//! it is written by hand and misbehaves; this one does what the library does.
#![expect(
    clippy::unwrap_used,
    reason = "a test server ends on the first surprise"
)]

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::json;

struct Adds;

impl ServerHandler for Adds {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let number = json!({"type": "integer"});
        let schema = json!({
            "type": "object", "required": ["a", "b"], "properties": {"a": number, "b": number},
        });
        let schema = schema.as_object().unwrap().clone();
        let add = Tool::new("add", "Adds two numbers.", schema);
        Ok(ListToolsResult::with_all_items(vec![add]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let number = |key: &str| arguments.get(key).and_then(serde_json::Value::as_i64);
        let (Some(a), Some(b)) = (number("a"), number("b")) else {
            return Err(ErrorData::invalid_params("two numbers are needed", None));
        };
        let sum = ContentBlock::text(format!("the sum is {}", a.saturating_add(b)));
        Ok(CallToolResult::success(vec![sum]).into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let pipes = (tokio::io::stdin(), tokio::io::stdout());
    let running = rmcp::serve_server(Adds, pipes).await.unwrap();
    running.waiting().await.unwrap();
}
