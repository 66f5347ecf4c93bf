//! Canonical objects without a tree in between, for objects that are written often.
//! Code that writes one names its fields in the order RFC 8785 wants.

use serde_json::Value;

use super::CanonicalError;

/// An object being written.
#[derive(Debug)]
pub(crate) struct Object {
    out: Vec<u8>,
    is_empty: bool,
}

impl Object {
    /// An object of about so many bytes.
    pub(crate) fn new(bytes: usize) -> Object {
        let mut out = Vec::with_capacity(bytes);
        out.push(b'{');
        Object {
            out,
            is_empty: true,
        }
    }

    /// Appends to given bytes, which [`Object::end_bytes`] returns.
    pub(crate) fn within(out: &mut Vec<u8>) -> Object {
        let mut out = std::mem::take(out);
        out.push(b'{');
        Object {
            out,
            is_empty: true,
        }
    }

    /// Keys are ours and need no escaping.
    fn key(&mut self, key: &str) {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    pub(crate) fn text(&mut self, key: &str, text: &str) -> Result<(), CanonicalError> {
        self.key(key);
        super::write_text(text, &mut self.out)
    }

    pub(crate) fn maybe_text(
        &mut self,
        key: &str,
        text: Option<&str>,
    ) -> Result<(), CanonicalError> {
        text.map_or(Ok(()), |text| self.text(key, text))
    }

    /// A text, or null.
    pub(crate) fn text_or_null(
        &mut self,
        key: &str,
        text: Option<&str>,
    ) -> Result<(), CanonicalError> {
        match text {
            Some(text) => self.text(key, text),
            None => {
                self.write_raw(key, "null");
                Ok(())
            }
        }
    }

    /// True, false, or null.
    pub(crate) fn flag_or_null(&mut self, key: &str, flag: Option<bool>) {
        let word = match flag {
            Some(true) => "true",
            Some(false) => "false",
            None => "null",
        };
        self.write_raw(key, word);
    }

    pub(crate) fn integer(&mut self, key: &str, number: i64) -> Result<(), CanonicalError> {
        self.key(key);
        super::write_integer(number, &mut self.out)
    }

    pub(crate) fn count(&mut self, key: &str, number: u64) -> Result<(), CanonicalError> {
        match i64::try_from(number) {
            Ok(number) => self.integer(key, number),
            Err(_) => self.value(key, &Value::from(number)),
        }
    }

    /// Writes text that is canonical already.
    pub(crate) fn write_raw(&mut self, key: &str, text: &str) {
        self.key(key);
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn value(&mut self, key: &str, value: &Value) -> Result<(), CanonicalError> {
        self.key(key);
        super::write(value, &mut self.out)
    }

    pub(crate) fn object(
        &mut self,
        key: &str,
        fill: impl FnOnce(&mut Object) -> Result<(), CanonicalError>,
    ) -> Result<(), CanonicalError> {
        self.key(key);
        let mut object = Object::within(&mut self.out);
        let filled = fill(&mut object);
        self.out = object.end_bytes();
        filled
    }

    pub(crate) fn list<T>(
        &mut self,
        key: &str,
        items: &[T],
        item: impl Fn(&T, &mut Vec<u8>) -> Result<(), CanonicalError>,
    ) -> Result<(), CanonicalError> {
        self.key(key);
        self.out.push(b'[');
        for (index, one) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            item(one, &mut self.out)?;
        }
        self.out.push(b']');
        Ok(())
    }

    pub(crate) fn end_bytes(mut self) -> Vec<u8> {
        self.out.push(b'}');
        self.out
    }

    /// Only text was written, so nothing is lost here.
    pub(crate) fn end(self) -> String {
        String::from_utf8(self.end_bytes())
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}
