//! The meanings of the codes, for the reference page.

use super::FindingCode;

/// The meaning of each code.
const MEANINGS: &[(FindingCode, &str)] = &[
    (
        FindingCode::Invisible,
        "An invisible character: a zero-width space, a soft hyphen, a selector where none belongs.",
    ),
    (
        FindingCode::Direction,
        "A control that changes the direction of text, so that it reads differently from how it is stored.",
    ),
    (
        FindingCode::Tags,
        "Tags, which spell a text that no screen shows.",
    ),
    (
        FindingCode::PrivateUse,
        "A character for private use, whose meaning its reader does not know.",
    ),
    (
        FindingCode::Escape,
        "A control character, an escape sequence of a terminal, or a line end that few programs show.",
    ),
    (
        FindingCode::Padding,
        "So much empty space that the text after it is out of sight.",
    ),
    (
        FindingCode::LongText,
        "A text too long to be read: `TEXT_BYTES_HELD`, for instructions `INSTRUCTIONS_BYTES_HELD`.",
    ),
    (
        FindingCode::ForeignTool,
        "The name of a tool of another server.",
    ),
    (
        FindingCode::OwnTool,
        "The name of a tool of Ringfence's own.",
    ),
    (
        FindingCode::EncodedCommand,
        "Base64, hexadecimal digits or escapes that decode to a command.",
    ),
    (
        FindingCode::EncodedText,
        "Base64, hexadecimal digits or escapes that decode to a readable text.",
    ),
    (
        FindingCode::MixedScript,
        "A name of a tool or a parameter with letters of several alphabets that look alike.",
    ),
    (
        FindingCode::LookAlike,
        "A server name that can be taken for that of another server or of an own tool.",
    ),
    (
        FindingCode::Clone,
        "The description of another server's tool.",
    ),
    (
        FindingCode::DeepSchema,
        "A schema nested deeper than `SCHEMA_DEPTH_HELD`.",
    ),
    (
        FindingCode::LargeSchema,
        "A schema of more than `SCHEMA_BYTES_HELD` bytes.",
    ),
    (
        FindingCode::ForeignReference,
        "A `$ref` that leads out of the document.",
    ),
    (
        FindingCode::HeaderArgument,
        "An argument that the client sends as a header, by `x-mcp-header`.",
    ),
    (
        FindingCode::Directive,
        "An order to the model, or markup that looks like one.",
    ),
    (
        FindingCode::Override,
        "An attempt to replace what the model was told.",
    ),
    (FindingCode::Secrecy, "Something to be kept from people."),
    (
        FindingCode::Precedence,
        "A claim to be used before or instead of other tools.",
    ),
    (
        FindingCode::Credentials,
        "Credentials, or the files they are kept in.",
    ),
    (FindingCode::Transfer, "Data that is to be sent somewhere."),
    (
        FindingCode::UnpinnedVersion,
        "A package, an image or a module without an exact version or digest: `npx -y pkg`, `uvx pkg`, `docker run image:tag`. What runs can change.",
    ),
    (
        FindingCode::Privileged,
        "Rights that a server does not need: `sudo`, `--privileged`, a namespace or the engine's socket of the host.",
    ),
    (
        FindingCode::HostMount,
        "A folder of the host inside a container.",
    ),
    (
        FindingCode::Shell,
        "A shell that reads a command line: `sh -c`, `cmd /c`.",
    ),
    (
        FindingCode::PlainSecret,
        "A secret in plain text among variables, arguments, headers or in the address. It is never shown.",
    ),
    (
        FindingCode::PlainHttp,
        "`http://` to a host that is not this machine.",
    ),
];

impl FindingCode {
    /// What it means, as a sentence.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        let known = MEANINGS.iter().find(|(code, _)| *code == self);
        known.map_or("", |(_, meaning)| meaning)
    }
}

#[cfg(test)]
mod tests {
    use model::word::Word as _;

    use super::*;

    #[test]
    fn every_code_has_a_meaning() {
        for code in FindingCode::ALL {
            assert!(!code.meaning().is_empty(), "{}", code.word());
        }
    }
}
