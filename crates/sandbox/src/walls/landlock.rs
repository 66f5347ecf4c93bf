//! Landlock: no files, no ports, no signals to others.

use std::net::Ipv4Addr;

use landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, Ruleset, RulesetAttr, RulesetError,
    RulesetStatus, Scope,
};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrV4, SocketType};

use super::{Layer, Walls};

/// The first version that knows of ports.
pub(super) const NETWORK_ABI: u8 = 4;

/// The first version that knows of signals and abstract sockets.
pub(super) const SCOPES_ABI: u8 = 6;

/// Everything this version can deny is denied; an older kernel denies the part it
/// knows. Nothing is ever allowed, so a newer version here can only narrow.
const DENIED: ABI = ABI::V9;

/// The kernel's own version; 0 where there is none or it is switched off.
pub fn kernel_abi() -> u8 {
    const CREATE_RULESET_VERSION: u32 = 1;
    #[expect(
        unsafe_code,
        reason = "neither rustix nor the landlock crate asks only for this"
    )]
    // Safety: with this flag the kernel reads no memory of ours and returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    };
    u8::try_from(version).unwrap_or(0)
}

/// Denies this thread, and those it starts from now on, all that Landlock can
/// deny, then tries each.
pub(super) fn deny_all(walls: &mut Walls, alone: Result<(), String>) {
    walls.landlock_abi = kernel_abi();
    let denied = match (alone, restrict()) {
        // Another thread would be free of it: then it is not a wall.
        (Err(reason), _) => Err(reason),
        (Ok(()), Err(error)) => Err(error.to_string()),
        (Ok(()), Ok(RulesetStatus::NotEnforced)) => {
            Err("the kernel has no landlock, or it is not enabled".to_owned())
        }
        (Ok(()), Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced)) => Ok(()),
    };
    let abi = walls.landlock_abi;
    let since = |first: u8, probe: fn() -> Result<(), String>| {
        denied.clone()?;
        if abi < first {
            return Err(format!(
                "needs landlock version {first}, the kernel has {abi}"
            ));
        }
        probe()
    };
    walls.set(Layer::LandlockFiles, since(1, files_are_denied));
    walls.set(Layer::LandlockNetwork, since(NETWORK_ABI, ports_are_denied));
    walls.set(Layer::LandlockScopes, since(SCOPES_ABI, signals_are_denied));
}

fn restrict() -> Result<RulesetStatus, RulesetError> {
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(DENIED))?
        .handle_access(AccessNet::from_all(DENIED))?
        .scope(Scope::from_all(DENIED))?
        .create()?
        .restrict_self()?;
    match status.landlock {
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => {
            Ok(RulesetStatus::NotEnforced)
        }
        LandlockStatus::Available { .. } => Ok(status.ruleset),
    }
}

fn files_are_denied() -> Result<(), String> {
    match rustix::fs::openat(CWD, c"/", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::ACCESS) => Ok(()),
        Ok(_) => Err("a folder could still be opened".to_owned()),
        Err(error) => Err(format!("opening a folder failed otherwise: {error}")),
    }
}

fn ports_are_denied() -> Result<(), String> {
    let socket = match rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None) {
        Ok(socket) => socket,
        // No such network on this machine: nothing to be denied.
        Err(Errno::AFNOSUPPORT) => return Ok(()),
        Err(error) => return Err(format!("no socket to try with: {error}")),
    };
    match rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)) {
        Err(Errno::ACCESS) => Ok(()),
        Ok(()) => Err("a port could still be bound".to_owned()),
        Err(error) => Err(format!("binding a port failed otherwise: {error}")),
    }
}

fn signals_are_denied() -> Result<(), String> {
    let Some(parent) = rustix::process::getppid() else {
        return Err("there is no parent to try with".to_owned());
    };
    // Signal zero: asks whether one could be sent, and sends none.
    match rustix::process::test_kill_process(parent) {
        Err(Errno::PERM) => Ok(()),
        Ok(()) => Err("a signal could still be sent".to_owned()),
        Err(error) => Err(format!("asking about a signal failed otherwise: {error}")),
    }
}
