//! What stands in the root folder of a child with namespaces, and where: a plan, made from
//! the order without changing anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::file_rule::{FileRight, FileRule};
use crate::limit;
use crate::message::JailOrder;

/// Programs and libraries of the system. Links among them stay links.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/snap",
];

/// What programs read of the system's settings. Nothing here is secret, and nothing names
/// other machines.
const SETTINGS: &[&str] = &[
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "inputrc",
    "java-11-openjdk",
    "java-17-openjdk",
    "java-21-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "magic.mime",
    "mime.types",
    "os-release",
    "perl",
    "pki",
    "protocols",
    "python3",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
];

/// What programs ask about the machine.
const MACHINE: &str = "/sys/devices/system/cpu";

/// The devices every program expects.
pub(crate) const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// Something that stands in the new root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A part of the system, to be read and executed.
    System,
    /// A small file of the system's settings: a copy is cheaper than a mount.
    Setting,
    /// A part of the program's installation, to be read and executed.
    Installation,
    /// Declared, with a right.
    Declared(FileRight),
    /// The child's own.
    Own,
    /// Seen as writable; the number of the overlay.
    Overlay(usize),
    /// Nothing, where a folder of the parent's would be seen.
    Hidden,
}

impl Place {
    /// What the child may do with it, if it is given.
    fn right(&self) -> Option<FileRight> {
        match self {
            Place::System | Place::Installation => Some(FileRight::Execute),
            Place::Declared(right) => Some(*right),
            Place::Own | Place::Overlay(_) => Some(FileRight::Write),
            // In `/etc`, which is given as a whole.
            Place::Setting | Place::Hidden => None,
        }
    }
}

/// The plan of a root folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct RootPlan {
    /// By path, so that what holds another comes first.
    pub(crate) places: BTreeMap<PathBuf, Place>,
    /// Links of the system's root, and what they say.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
}

impl RootPlan {
    pub(crate) fn new(order: &JailOrder) -> RootPlan {
        let mut plan = RootPlan::default();
        for path in SYSTEM.iter().map(Path::new) {
            plan.add_system(path);
        }
        for name in SETTINGS {
            let path = Path::new("/etc").join(name);
            // A link out of `/etc` leads to a part of the system, or to nothing.
            let Ok(found) = fs::metadata(&path) else {
                continue;
            };
            let is_small = found.is_file() && found.len() <= limit::SETTING_BYTES_MAX;
            let place = match is_small {
                true => Place::Setting,
                false => Place::System,
            };
            plan.places.insert(path, place);
        }
        if Path::new(MACHINE).exists() {
            plan.places.insert(PathBuf::from(MACHINE), Place::System);
        }
        for path in &order.installation {
            if !plan.is_covered(path) {
                plan.places.insert(path.clone(), Place::Installation);
            }
        }
        for path in &order.private {
            if plan.is_covered(path) {
                plan.places.insert(path.clone(), Place::Hidden);
            }
        }
        for rule in &order.declared {
            let place = Place::Declared(rule.right);
            plan.places.insert(rule.path.clone(), place);
        }
        for (number, overlay) in order.overlays.iter().enumerate() {
            plan.places
                .insert(overlay.folder.clone(), Place::Overlay(number));
        }
        for path in &order.own {
            plan.places.insert(path.clone(), Place::Own);
        }
        plan
    }

    /// The rules of Landlock for this root. What lies in something with the same right needs
    /// none of its own.
    pub(crate) fn rules(&self, has_facts: bool) -> Vec<FileRule> {
        let mut rules = vec![FileRule {
            path: PathBuf::from("/etc"),
            right: FileRight::Execute,
        }];
        for (path, place) in &self.places {
            let (Some(right), Ok(path)) = (place.right(), path.canonicalize()) else {
                continue;
            };
            let is_given = |rule: &FileRule| rule.right == right && path.starts_with(&rule.path);
            if !rules.iter().any(is_given) {
                rules.push(FileRule { path, right });
            }
        }
        let mut add = |path: PathBuf, right| rules.push(FileRule { path, right });
        add(PathBuf::from("/tmp"), FileRight::Write);
        if has_facts {
            add(PathBuf::from("/proc"), FileRight::Read);
        }
        for name in DEVICES {
            add(Path::new("/dev").join(name), FileRight::Device);
        }
        // A link to the lists below `/proc` and to `/tmp`.
        add(PathBuf::from("/dev"), FileRight::Read);
        rules
    }

    fn add_system(&mut self, path: &Path) {
        match fs::read_link(path) {
            Ok(target) => self.links.push((path.to_path_buf(), target)),
            Err(_) if path.is_dir() => {
                self.places.insert(path.to_path_buf(), Place::System);
            }
            Err(_) => {}
        }
    }

    /// Whether `path` lies in something that is there already.
    fn is_covered(&self, path: &Path) -> bool {
        path.ancestors()
            .any(|folder| self.places.contains_key(folder))
    }
}
