//! The example for programs that embed the engine does what it says.

use crate::world::{Home, worker};

#[path = "../../examples/embed.rs"]
#[expect(
    dead_code,
    reason = "its `main` starts workers from its own program, which a test is not"
)]
mod example;

#[tokio::test]
async fn the_example_publishes_calls_and_reads_the_audit() {
    let home = Home::new();
    let told = example::run(&home.path, worker()).await.unwrap();
    let expected = "\
published: true
result: {\"greeting\":\"Hello, Ada!\",\"length\":11}
audit: agent called hello: done
audit: owner called hello: done
audit is whole: true
";
    assert_eq!(told, expected);
}
