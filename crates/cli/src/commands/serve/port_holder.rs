//! Which process listens on a port, as far as `/proc` tells: processes of other users
//! keep their descriptors to themselves.

use std::fs;
use std::path::Path;

use model::text;

/// Lines of a socket table that are read.
const SOCKETS_MAX: usize = 65_536;
/// Processes, and descriptors of each, that are looked at.
const PROCESSES_MAX: usize = 32_768;
const DESCRIPTORS_MAX: usize = 4_096;
/// `LISTEN`, as the kernel's table has it.
const LISTENS: &str = "0A";
const NAME_CHARS_MAX: usize = 40;

/// A process that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortHolder {
    /// Its name, made visible: a process can call itself anything.
    pub(crate) name: String,
    pub(crate) process: u32,
}

/// The process that listens on a port of this machine.
pub(crate) fn find(port: u16) -> Option<PortHolder> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok());
    let sockets: Vec<_> = tables.flat_map(|table| inodes(&table, port)).collect();
    if sockets.is_empty() {
        return None;
    }
    let links: Vec<_> = sockets
        .iter()
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let processes = fs::read_dir("/proc").ok()?.flatten().take(PROCESSES_MAX);
    let mut numbered = processes.filter_map(|entry| {
        let process = entry.file_name().to_str()?.parse::<u32>().ok()?;
        Some((process, entry.path()))
    });
    let (process, folder) = numbered.find(|(_, folder)| holds(folder, &links))?;
    let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
    let name = text::elided(&text::one_line(name.trim_end()), NAME_CHARS_MAX);
    Some(PortHolder { name, process })
}

/// The sockets of a table that listen on a port.
fn inodes(table: &str, port: u16) -> Vec<String> {
    let lines = table.lines().skip(1).take(SOCKETS_MAX);
    let found = lines.filter_map(|line| {
        let mut columns = line.split_whitespace();
        let (_, local) = columns.nth(1)?.rsplit_once(':')?;
        let state = columns.nth(1)?;
        let is_it = u16::from_str_radix(local, 16) == Ok(port) && state == LISTENS;
        columns.nth(5).filter(|_| is_it).map(str::to_owned)
    });
    found.collect()
}

fn holds(folder: &Path, links: &[String]) -> bool {
    let descriptors = fs::read_dir(folder.join("fd")).into_iter().flatten();
    descriptors.flatten().take(DESCRIPTORS_MAX).any(|entry| {
        let link = fs::read_link(entry.path());
        link.is_ok_and(|link| {
            links
                .iter()
                .any(|wanted| link.as_os_str() == wanted.as_str())
        })
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listener_is_found_and_a_free_port_has_none() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                // A machine without IPv6.
                continue;
            };
            let port = listener.local_addr().expect("an address").port();
            let found = find(port).expect("this process");
            assert_eq!(found.process, std::process::id());
            assert!(!found.name.is_empty());
            drop(listener);
            assert_eq!(find(port), None);
        }
    }

    #[test]
    fn only_listening_sockets_of_that_port_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:1D28 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1\n   1: 0100007F:1D28 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4243 1\n   2: 0100007F:1D29 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4244 1\nbroken\n";
        assert_eq!(inodes(table, 0x1D28), ["4242"]);
        assert!(inodes("", 1).is_empty());
    }
}
