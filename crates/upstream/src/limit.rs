//! Every bound of this crate, named, in one place.

model::limits! {
    /// The name of a tool or a prompt as its server gives it, in characters.
    ITEM_NAME_CHARS_MAX: usize = 128;
    /// A title, in bytes.
    TITLE_BYTES_MAX: usize = 1_024;
    /// A description, or the instructions of a server, in bytes.
    TEXT_BYTES_MAX: usize = 64 * 1024;
    /// One schema of a tool as canonical JSON, in bytes.
    SCHEMA_BYTES_MAX: usize = 256 * 1024;
    /// Nesting of arrays and objects in one schema.
    SCHEMA_DEPTH_MAX: usize = 32;
    /// Values of all kinds in one schema.
    SCHEMA_NODES_MAX: usize = 20_000;
    /// Arguments of one prompt.
    PROMPT_ARGUMENTS_MAX: usize = 128;
    /// A URI template or a MIME type, in bytes.
    URI_BYTES_MAX: usize = 4_096;
    /// Arguments of the command that starts a server.
    COMMAND_ARGUMENTS_MAX: usize = 256;
    /// The command that starts a server, arguments included, in bytes.
    COMMAND_BYTES_MAX: usize = 64 * 1024;
    /// The name of a server, in characters.
    SERVER_NAME_CHARS_MAX: usize = 24;
    /// The name of a bridged tool, in characters.
    BRIDGED_NAME_CHARS_MAX: usize = 64;
    /// Items of one server: tools, prompts, resources and their templates.
    SERVER_ITEMS_MAX: usize = 4_096;
    /// Pin records of one server, in bytes.
    PIN_RECORD_BYTES_MAX: usize = 64 * 1024 * 1024;
    /// The lock file, in bytes.
    LOCK_BYTES_MAX: usize = 16 * 1024 * 1024;
    /// A text of an item from which on the item is held, in bytes.
    TEXT_BYTES_HELD: usize = 4 * 1024;
    /// Instructions of a server from which on they are held, in bytes.
    INSTRUCTIONS_BYTES_HELD: usize = 16 * 1024;
    /// A schema from which on its tool is held, in bytes.
    SCHEMA_BYTES_HELD: usize = 64 * 1024;
    /// Nesting of a schema from which on its tool is held.
    SCHEMA_DEPTH_HELD: usize = 20;
    /// Findings kept for one item; one that holds is always among them.
    ITEM_FINDINGS_MAX: usize = 64;
    /// Pairs of schemas that one comparison looks at; beyond it, it answers "wider".
    SCHEMA_STEPS_MAX: usize = 100_000;
    /// Differences shown for one item; the rest are counted.
    FIELD_DIFFS_MAX: usize = 200;
}
