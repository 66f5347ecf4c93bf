//! Runs the faces of the powers in a JavaScript engine, with the host behind
//! them, so that a test can say what a script would see.

use host::builtin;
use host::compute::Turn;
use host::message::{PowerFault, PowerRequest};
use model::record::mask::Masker;
use rquickjs::convert::List;
use rquickjs::{CatchResultExt, Context, Ctx, Function, Runtime};
use serde_json::{Value, json};

/// The faces the guest is built with.
const FACES: [&str; 4] = [
    include_str!("../../../../guest/faces/crypto.js"),
    include_str!("../../../../guest/faces/intl.js"),
    include_str!("../../../../guest/faces/parser.js"),
    include_str!("../../../../guest/faces/url.js"),
];

/// Random bytes that are the same in every run: 1, 2, 3 …
pub(crate) fn counting() -> impl FnMut(&mut [u8]) {
    let mut next = 0_u8;
    move |bytes| {
        for byte in bytes {
            next = next.wrapping_add(1);
            *byte = next;
        }
    }
}

/// One operation, without a face.
pub(crate) fn call(
    operation: &str,
    arguments: Value,
    bytes: &[u8],
) -> Result<(Value, Vec<u8>), PowerFault> {
    let ask = PowerRequest {
        arguments,
        bytes: bytes.to_vec(),
    };
    let answer = builtin::call(operation, &ask, &mut counting(), &Turn::endless())
        .expect("the operation is known")?;
    Ok((answer.value, answer.bytes))
}

/// The reason of a fault, with its kind.
pub(crate) fn reason(result: Result<(Value, Vec<u8>), PowerFault>) -> String {
    match result {
        Ok((value, _)) => panic!("no fault but {value}"),
        Err(fault) => format!("{} {}", fault.kind.word(), fault.reason),
    }
}

/// Puts every face into a fresh engine, runs the body of an async function, and
/// gives back what it returned, as JSON; or the error, as `{error}`.
pub(crate) fn run(body: &str) -> Value {
    let runtime = Runtime::new().unwrap();
    // As much as the sandbox gives, more or less.
    runtime.set_max_stack_size(1024 * 1024);
    let context = Context::full(&runtime).unwrap();
    let text: String = context.with(|ctx| {
        install(&ctx);
        let script = format!(
            "globalThis.outcome = null; (async () => {{ {body} }})()
                .then((value) => {{ outcome = JSON.stringify({{ value }}); }})
                .catch((e) => {{ outcome = JSON.stringify({{ error: {{ name: e.name, kind: e.kind, reason: e.reason, helper: e.helper, message: e.message }} }}); }});"
        );
        ctx.eval::<(), _>(script).catch(&ctx).unwrap();
        while ctx.execute_pending_job() {}
        ctx.globals().get("outcome").unwrap()
    });
    let outcome: Value = serde_json::from_str(&text).unwrap();
    match outcome.get("error") {
        Some(error) => json!({ "error": error }),
        None => outcome.get("value").cloned().unwrap_or(Value::Null),
    }
}

fn install(ctx: &Ctx<'_>) {
    let mut random = counting();
    let raw = Function::new(
        ctx.clone(),
        rquickjs::function::MutFn::new(
            move |operation: String, arguments: String, bytes: Vec<u8>| {
                let ask = PowerRequest {
                    arguments: serde_json::from_str(&arguments).unwrap(),
                    bytes,
                };
                List(
                    match builtin::call(&operation, &ask, &mut random, &Turn::endless()) {
                        Some(Ok(answer)) => {
                            (json!({ "value": answer.value }).to_string(), answer.bytes)
                        }
                        Some(Err(fault)) => (
                            json!({ "fault": fault.to_json(&Masker::none()) }).to_string(),
                            Vec::new(),
                        ),
                        None => panic!("no operation {operation}"),
                    },
                )
            },
        ),
    )
    .unwrap();
    ctx.globals().set("raw", raw).unwrap();
    ctx.eval::<(), _>(
        "globalThis.hostCall = (operation, args, bytes) => {
            const [text, out] = raw(operation, JSON.stringify(args ?? null), Array.from(bytes ?? []));
            const answer = JSON.parse(text);
            if (answer.fault) throw Object.assign(new Error(answer.fault.message), answer.fault);
            return { value: answer.value, bytes: Uint8Array.from(out) };
        };",
    )
    .unwrap();
    for source in FACES {
        let script = format!("Object.assign(globalThis, (\n{source}\n)(hostCall));");
        ctx.eval::<(), _>(script).catch(ctx).unwrap();
    }
    ctx.eval::<(), _>("globalThis.safety = { parser };")
        .unwrap();
}

#[test]
fn every_operation_is_known_and_no_other() {
    for operation in builtin::OPERATIONS {
        let answer = builtin::call(
            operation,
            &PowerRequest::default(),
            &mut counting(),
            &Turn::endless(),
        );
        assert!(answer.is_some(), "{operation}");
    }
    let absent = builtin::call(
        "fs.readText",
        &PowerRequest::default(),
        &mut counting(),
        &Turn::endless(),
    );
    assert!(absent.is_none());
}
