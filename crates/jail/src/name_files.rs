//! The files by which a child with an open network looks names up: the machine's own, read
//! before the new root covers them. Every other child looks nothing up, and gets none of them.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use crate::limit;
use crate::settings::JailNetwork;

/// What a child without names to look up reads about hosts.
const OWN_HOSTS: &str = "127.0.0.1 localhost\n::1 localhost\n";

/// Where names are looked up if the machine does not say: what C libraries do by themselves.
const SOURCES_DEFAULT: &str = "hosts: files dns";

/// What stands in `/etc` of a new root about names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameFiles {
    /// `hosts`.
    pub(crate) hosts: Vec<u8>,
    /// `resolv.conf`.
    pub(crate) resolver: Vec<u8>,
    /// The line of `nsswitch.conf` that says where hosts are looked up.
    pub(crate) sources: String,
}

impl NameFiles {
    /// What a child with this network gets of the files below `etc`. Links are followed here:
    /// what they lead to, often below `/run`, is not in the new root.
    pub(crate) fn read(network: JailNetwork, etc: &Path) -> NameFiles {
        match network {
            // Names are the parent's to look up.
            JailNetwork::None | JailNetwork::Proxy => NameFiles {
                hosts: OWN_HOSTS.into(),
                resolver: Vec::new(),
                sources: "hosts: files".to_owned(),
            },
            JailNetwork::Open => {
                let hosts = read_lines(&etc.join("hosts"));
                let switch = read_lines(&etc.join("nsswitch.conf"));
                NameFiles {
                    hosts: hosts.unwrap_or_else(|| OWN_HOSTS.into()),
                    resolver: read_lines(&etc.join("resolv.conf")).unwrap_or_default(),
                    sources: sources(&String::from_utf8_lossy(&switch.unwrap_or_default())),
                }
            }
        }
    }
}

/// The line about hosts of a `nsswitch.conf`.
fn sources(switch: &str) -> String {
    let mut lines = switch.lines().map(str::trim);
    let line = lines.find(|line| line.starts_with("hosts:"));
    line.unwrap_or(SOURCES_DEFAULT).to_owned()
}

/// The whole lines of a file, within a bound. Nothing if it cannot be read: a machine without
/// names starts programs all the same.
fn read_lines(path: &Path) -> Option<Vec<u8>> {
    // A device or a pipe in its place would not end.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let mut file = fs::File::open(path)
        .ok()?
        .take(limit::NAME_FILE_BYTES_MAX + 1);
    file.read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > limit::NAME_FILE_BYTES_MAX {
        // Half a line would be another name.
        let end = bytes.iter().rposition(|byte| *byte == b'\n');
        bytes.truncate(end.map_or(0, |end| end + 1));
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let name = format!("ringfence-names-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    #[test]
    fn an_open_network_has_the_names_of_the_machine() {
        let etc = folder("open");
        fs::write(etc.join("hosts"), "127.0.0.9 desk\n").expect("hosts");
        fs::write(etc.join("stub"), "nameserver 127.0.0.53\n").expect("a resolver");
        // As systemd-resolved has it: a link out of `/etc`.
        let _ = fs::remove_file(etc.join("resolv.conf"));
        std::os::unix::fs::symlink(etc.join("stub"), etc.join("resolv.conf")).expect("a link");
        let switch = "# x\npasswd: files\nhosts:  files mdns4 [NOTFOUND=return] dns\n";
        fs::write(etc.join("nsswitch.conf"), switch).expect("sources");
        let open = NameFiles::read(JailNetwork::Open, &etc);
        assert_eq!(open.hosts, b"127.0.0.9 desk\n");
        assert_eq!(open.resolver, b"nameserver 127.0.0.53\n");
        assert_eq!(open.sources, "hosts:  files mdns4 [NOTFOUND=return] dns");
        for closed in [JailNetwork::None, JailNetwork::Proxy] {
            let names = NameFiles::read(closed, &etc);
            assert_eq!(names.hosts, OWN_HOSTS.as_bytes());
            assert!(names.resolver.is_empty());
            assert_eq!(names.sources, "hosts: files");
        }
        let _ = fs::remove_dir_all(etc);
    }

    #[test]
    fn a_machine_without_such_files_has_the_usual_sources() {
        let names = NameFiles::read(JailNetwork::Open, Path::new("/nowhere"));
        assert_eq!(names.hosts, OWN_HOSTS.as_bytes());
        assert_eq!(names.sources, SOURCES_DEFAULT);
    }

    #[test]
    fn a_large_file_is_cut_at_a_line() {
        let etc = folder("large");
        let line = "127.0.0.9 desk.example\n";
        let bytes_max = usize::try_from(limit::NAME_FILE_BYTES_MAX).expect("a size");
        let count = bytes_max / line.len() + 9;
        fs::write(etc.join("hosts"), line.repeat(count)).expect("hosts");
        let hosts = NameFiles::read(JailNetwork::Open, &etc).hosts;
        assert!(hosts.len() <= bytes_max);
        assert!(hosts.ends_with(line.as_bytes()) && !hosts.is_empty());
        let _ = fs::remove_dir_all(etc);
    }
}
