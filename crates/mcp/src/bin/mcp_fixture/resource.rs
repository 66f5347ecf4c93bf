//! Resources: a text, a picture, one to watch, and a template.

use rmcp::model::{ErrorData, ReadResourceResponse, ReadResourceResult};
use serde_json::{Value, json};

use crate::content::PICTURE;
use crate::server::cacheable;

pub(crate) fn list() -> Value {
    json!([
        {
            "uri": "test://static-text",
            "name": "static text",
            "description": "A text that never changes.",
            "mimeType": "text/plain",
        },
        {
            "uri": "test://static-binary",
            "name": "static picture",
            "description": "A picture that never changes.",
            "mimeType": "image/png",
        },
        {
            "uri": "test://watched-resource",
            "name": "watched text",
            "description": "A text one can subscribe to.",
            "mimeType": "text/plain",
        },
    ])
}

pub(crate) fn templates() -> Value {
    json!([{
        "uriTemplate": "test://template/{id}/data",
        "name": "data by id",
        "description": "Data about one id.",
        "mimeType": "application/json",
    }])
}

pub(crate) fn read(uri: &str) -> Result<ReadResourceResponse, ErrorData> {
    let Some(contents) = contents(uri) else {
        let data = json!({"uri": uri});
        return Err(ErrorData::resource_not_found(
            "there is no such resource",
            Some(data),
        ));
    };
    let result: ReadResourceResult = cacheable("contents", json!([contents]))?;
    Ok(result.into())
}

fn contents(uri: &str) -> Option<Value> {
    let text = |text: &str| json!({"uri": uri, "mimeType": "text/plain", "text": text});
    match uri {
        "test://static-text" => Some(text("This is the content of the static text resource.")),
        "test://watched-resource" => Some(text("Nothing has happened yet.")),
        "test://static-binary" => {
            Some(json!({"uri": uri, "mimeType": "image/png", "blob": PICTURE}))
        }
        _ => {
            let id = uri
                .strip_prefix("test://template/")?
                .strip_suffix("/data")?;
            let data = json!({
                "id": id,
                "templateTest": true,
                "data": format!("Data for ID: {id}"),
            });
            let text = data.to_string();
            Some(json!({"uri": uri, "mimeType": "application/json", "text": text}))
        }
    }
}
