//! The network of a child in the jail: every connection it makes goes to a guard, which
//! decides. Servers of other people and the programs of native tools use it alike.

use host::egress::Egress;
use jail::JailedChild;
use tokio::task::AbortHandle;

/// Answers the connections of one child. Dropped, it accepts nothing more and ends every
/// connection there is.
#[derive(Debug)]
pub struct EgressDoor {
    egress: Egress,
    accepting: AbortHandle,
}

impl EgressDoor {
    /// Takes the connections of a child whose network is the proxy, and hands them to
    /// `egress`; `None` if the child has no such network.
    pub fn open(egress: Egress, child: &mut JailedChild) -> Option<EgressDoor> {
        let mut connections = child.egress.take()?;
        let serving = egress.clone();
        let accepting = tokio::spawn(async move {
            while let Ok(stream) = connections.accept().await {
                serving.admit(stream);
            }
        });
        Some(EgressDoor {
            egress,
            accepting: accepting.abort_handle(),
        })
    }

    /// The guard behind it.
    pub fn egress(&self) -> &Egress {
        &self.egress
    }
}

impl Drop for EgressDoor {
    fn drop(&mut self) {
        self.accepting.abort();
        self.egress.close();
    }
}
