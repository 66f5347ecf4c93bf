//! Asking the person at the client, in both eras and over both transports.
