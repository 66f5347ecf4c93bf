//! What a child is made from, as the copies of a supervisor hold it.

use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use crate::control_group::{ControlGroup, OpenGroup};
use crate::identity::ChildIdentity;
use crate::line::STREAMS;
use crate::message::JailOrder;

/// What a child is made from.
pub(crate) struct ChildParts<'a> {
    pub(crate) order: &'a JailOrder,
    pub(crate) streams: &'a [OwnedFd; STREAMS],
    /// Where the parent takes connections of the child.
    pub(crate) door: Option<&'a OwnedFd>,
    /// Where the supervisor takes the listener for `connect`.
    pub(crate) hand: Option<&'a UnixStream>,
    pub(crate) group: &'a Result<ControlGroup, String>,
    /// The user and the group of the supervisor.
    pub(crate) user: (u32, u32),
    /// `None` if the child is who its parent is.
    pub(crate) identity: Result<Option<ChildIdentity>, String>,
    /// Why there are no namespaces, on the lower rung.
    pub(crate) no_namespaces: String,
}

impl ChildParts<'_> {
    pub(crate) fn identity(&self) -> Result<Option<&ChildIdentity>, String> {
        match &self.identity {
            Ok(identity) => Ok(identity.as_ref()),
            Err(reason) => Err(reason.clone()),
        }
    }

    /// The control group, to be joined; why there is none.
    pub(crate) fn open_group(&self) -> Result<OpenGroup, String> {
        match self.group {
            Ok(group) => group.open().map_err(|error| error.to_string()),
            Err(reason) => Err(reason.clone()),
        }
    }

    /// The descriptors a copy of the supervisor keeps.
    pub(crate) fn kept(&self, more: &[RawFd]) -> Vec<RawFd> {
        let mut kept: Vec<RawFd> = self.streams.iter().map(|one| one.as_raw_fd()).collect();
        kept.extend(self.door.map(|door| door.as_raw_fd()));
        kept.extend(self.hand.map(|hand| hand.as_raw_fd()));
        kept.extend(more);
        kept
    }
}
