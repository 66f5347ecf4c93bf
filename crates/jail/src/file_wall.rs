//! Landlock around the launcher: the given files and folders, no signals to others,
//! and no ports where no network was declared.

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, PathFdError, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::file_rule::{FileRight, FileRule};
use crate::settings::{JailNetwork, JailRung};
use crate::wall::{self, FILES_ABI, SIGNALS_ABI};

/// Everything this version can deny is denied but for the rules; an older kernel denies
/// what it knows.
const DENIED: ABI = ABI::V9;

/// What the kernel made of it: for files, and for signals.
type Outcomes = (Result<(), String>, Result<(), String>);

/// Restricts this thread, which must be the only one, and all that comes of it, then tries.
/// `Err` when a rule no longer means the file it was made for.
pub(crate) fn restrict(
    rules: &[FileRule],
    network: JailNetwork,
    rung: JailRung,
) -> Result<Outcomes, String> {
    let abi = sandbox::walls::landlock_abi();
    if let Err(reason) = wall::landlock_since(1, abi) {
        return Ok((Err(reason.clone()), Err(reason)));
    }
    let ruleset = match create(network, rung) {
        Ok(ruleset) => ruleset,
        Err(error) => return Ok((Err(error.to_string()), Err(error.to_string()))),
    };
    let ruleset = add(ruleset, rules, rung)?;
    if let Err(error) = ruleset.restrict_self() {
        return Ok((Err(error.to_string()), Err(error.to_string())));
    }
    let files = wall::landlock_since(FILES_ABI, abi).and_then(|()| files_are_denied());
    let signals = match rung {
        // Of other processes there are none.
        JailRung::Namespaces => signals_are_denied(),
        JailRung::Landlock => {
            wall::landlock_since(SIGNALS_ABI, abi).and_then(|()| signals_are_denied())
        }
    };
    Ok((files, signals))
}

fn create(network: JailNetwork, rung: JailRung) -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(DENIED))?
        .scope(Scope::from_all(DENIED))?;
    match (network, rung) {
        // A connection to the proxy is made by the supervisor, so the child needs no port.
        (JailNetwork::None, _) | (JailNetwork::Proxy, JailRung::Landlock) => {
            ruleset.handle_access(AccessNet::from_all(DENIED))?.create()
        }
        (JailNetwork::Proxy, JailRung::Namespaces) | (JailNetwork::Open, _) => ruleset.create(),
    }
}

fn add(
    mut ruleset: RulesetCreated,
    rules: &[FileRule],
    rung: JailRung,
) -> Result<RulesetCreated, String> {
    for rule in rules {
        let path = rule.path.display();
        let opened = match PathFd::new(&rule.path) {
            Ok(opened) => opened,
            // What is gone is not given.
            Err(PathFdError::OpenCall { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                continue;
            }
            Err(error) => return Err(format!("could not open `{path}`: {error}")),
        };
        // Attack: a child that may write into a folder puts a link in the place of
        // something given there. The path has no links in it when it is written down.
        let leads_here = match rung {
            // In a root of its own everything was mounted under its path, and nothing runs yet.
            JailRung::Namespaces => true,
            JailRung::Landlock => {
                let number = opened.as_fd().as_raw_fd();
                let found = fs::read_link(format!("/proc/self/fd/{number}"));
                found.is_ok_and(|found| found == rule.path)
            }
        };
        if !leads_here {
            return Err(format!("`{path}` leads elsewhere now; start again"));
        }
        let stat = rustix::fs::fstat(&opened).map_err(|error| format!("`{path}`: {error}"))?;
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let mut access = access(rule.right);
        if !is_folder {
            access &= AccessFs::from_file(DENIED);
        }
        ruleset = ruleset
            .add_rule(PathBeneath::new(opened, access))
            .map_err(|error| format!("could not give `{path}`: {error}"))?;
    }
    Ok(ruleset)
}

fn access(right: FileRight) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    match right {
        FileRight::Read => read,
        FileRight::Execute => read | AccessFs::Execute,
        FileRight::Device => AccessFs::ReadFile | AccessFs::WriteFile,
        FileRight::Write => {
            let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
            AccessFs::from_all(DENIED) & !devices
        }
    }
}

fn files_are_denied() -> Result<(), String> {
    match rustix::fs::openat(CWD, c"/", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::ACCESS) => Ok(()),
        Ok(_) => Err("the root folder could still be opened".to_owned()),
        Err(error) => Err(format!("opening the root folder failed otherwise: {error}")),
    }
}

fn signals_are_denied() -> Result<(), String> {
    let Some(parent) = rustix::process::getppid() else {
        return Err("there is no parent to try with".to_owned());
    };
    // Signal nought: asks whether one could be sent, and sends none.
    match rustix::process::test_kill_process(parent) {
        Err(Errno::PERM | Errno::SRCH) => Ok(()),
        Ok(()) => Err("a signal could still be sent".to_owned()),
        Err(error) => Err(format!("asking about a signal failed otherwise: {error}")),
    }
}
