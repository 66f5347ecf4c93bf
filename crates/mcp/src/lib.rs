//! The MCP door: translates what clients say into calls of the engine and back.
//! It never decides.
