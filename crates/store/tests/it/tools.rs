//! Tools as files.

use std::fs;

use store::{StoreError, ToolFolder};

use crate::home::Home;

#[test]
fn what_is_written_is_found() {
    let home = Home::new("tools");
    let folder = ToolFolder::open(&home.path).unwrap();
    assert!(!folder.changed());
    folder.write("b", "{}").unwrap();
    assert!(folder.changed());
    assert!(!folder.changed());
    folder.create("a", "[]").unwrap();
    assert!(matches!(
        folder.create("a", "x"),
        Err(StoreError::Exists { .. })
    ));
    fs::write(home.path.join("tools/broken.json"), b"\xff\xfe").unwrap();
    let files = folder.scan().unwrap();
    let names: Vec<_> = files.iter().map(|file| file.file_name.as_str()).collect();
    assert_eq!(names, ["a.json", "b.json", "broken.json"]);
    assert_eq!(files[0].text.as_deref(), Ok("[]"));
    assert!(files[2].text.is_err());
    let trashed = folder.trash("a").unwrap();
    assert_eq!(fs::read_to_string(trashed).unwrap(), "[]");
    assert_eq!(folder.scan().unwrap().len(), 2);
}
