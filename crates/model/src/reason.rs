//! Every reason for a refusal, listed once, with a stable code.
//!
//! A code never changes its meaning and is never used again for another. The
//! reference page is generated from here.

use std::fmt::Write as _;

/// Writes the enum and its tables from one list, so that no reason can lack a
/// code, a meaning or its line on the reference page.
macro_rules! reasons {
    ($($name:ident, $code:literal, $meaning:literal;)*) => {
        /// Why something was refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason {
            $(#[doc = $meaning] $name,)*
        }

        impl Reason {
            /// All of them, in the order of their codes.
            pub const ALL: &[Reason] = &[$(Reason::$name,)*];

            /// The stable code.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self {
                    $(Reason::$name => $code,)*
                }
            }

            /// What it means and what helps, for the reference page.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Reason::$name => $meaning,)*
                }
            }
        }
    };
}

reasons! {
    AccessDenied, "access.denied",
        "A list of the operator denies the tool to the caller. Only the owner is told; to others the tool is unknown.";
    AnswerWithheld, "answer.withheld",
        "The call ran, but the caller left so many bytes of earlier answers unread that there was no room for this one. The audit log has the result.";
    ApprovalDeclined, "approval.declined",
        "A person was asked and said no. It did not run; do not repeat the call.";
    ApprovalDismissed, "approval.dismissed",
        "The question was put away without an answer. It did not run.";
    ApprovalMalformed, "approval.malformed",
        "The answer does not fit the question, so it is ignored. It did not run.";
    ApprovalPending, "approval.pending",
        "A person must approve the call and has not answered yet. It did not run; once it is approved, the same call runs.";
    ApprovalStale, "approval.stale",
        "The tool, its policy or a rule changed while a person was asked. It did not run; repeat the call to ask again.";
    ApprovalState, "approval.state",
        "The answer of a person came with a state that is not ours, belongs to another call, is too old or was used before. Nothing ran; make the call again to be asked again.";
    ApprovalTimedOut, "approval.timed_out",
        "A person was asked in their client and did not answer in time. It did not run; it can still be approved in the inbox.";
    ApprovalTooMany, "approval.too_many",
        "The limit of open questions is reached, for this caller or in all. It did not run; some must be answered first.";
    ApprovalUnavailable, "approval.unavailable",
        "A person must agree before this call runs, and the question could not be stored. It did not run.";
    ApprovalUsed, "approval.used",
        "The approval was valid once, and another call with the same arguments used it. It did not run; repeat the call to ask again.";
    ArgumentMissing, "argument.missing",
        "A required argument is absent or null. Give it.";
    ArgumentsNotAnObject, "argument.not_an_object",
        "The arguments of a call must be a JSON object.";
    ArgumentSchema, "argument.schema",
        "The arguments do not fit the JSON Schema of the tool. The message says where and why.";
    ArgumentsTooDeep, "argument.too_deep",
        "The arguments nest deeper than `ARGUMENTS_DEPTH_MAX`.";
    ArgumentsTooLarge, "argument.too_large",
        "The arguments are longer than `ARGUMENTS_BYTES_MAX`.";
    ArgumentType, "argument.type",
        "An argument is not of the type the tool declares.";
    ArgumentUnknown, "argument.unknown",
        "The tool declares no argument of that name.";
    AuditUnavailable, "audit.unavailable",
        "The audit entry could not be written, so the result is withheld. If the code had not started, it did not run.";
    CallBusy, "call.busy",
        "The caller has as many calls under way as `serve.calls_per_caller_max` allows, or left too many bytes of answers unread. It did not run; read the answers, or wait for a call to end.";
    CallCancelled, "call.cancelled",
        "The client cancelled the call or disconnected. It was stopped.";
    CallDeadline, "call.deadline",
        "The call's own deadline passed, waiting for approval included. It was stopped.";
    CallerPaused, "caller.paused",
        "The caller was denied too often, or an operator paused it. None of its calls run until a person resumes it with `ringfence callers resume NAME`; trying again does not help.";
    CallerUnavailable, "caller.unavailable",
        "The caller's record cannot be read or written just now, so nothing runs. The operator sees why.";
    ChangesProtected, "changes.protected",
        "Git would change or delete files that no tool changes in an operator's folder: hooks, settings of editors, shells and assistants. Nothing was copied or committed; do it by hand.";
    ChangesStale, "changes.stale",
        "A file was changed in the folder after the changes were made beside it. Nothing was copied; run the tool again.";
    ChangesTooMany, "changes.too_many",
        "There are more changed files than a person can be shown by name, so no one was asked and nothing was copied. Change fewer files in one call, or allow `applyChanges` by a rule.";
    ChangesUnknown, "changes.unknown",
        "There are no such changes of this caller: they were applied, replaced or removed, or are another's.";
    ConnectionFailed, "connection.failed",
        "The database or service of a connection cannot be reached, refuses the sign-in, or has a role that may do more than data. The operator sees why.";
    ConnectionUnknown, "connection.unknown",
        "There is no connection of that name and kind for this caller.";
    ConsentRequired, "consent.required",
        "The owner has not granted the access that this tool needs. Nothing ran; run `ringfence test` at a terminal, or with `--yes`.";
    DisclosureResource, "disclosure.resource",
        "The tool ships no resource of that name. `load_tool` names those it has.";
    DisclosureTooLarge, "disclosure.too_large",
        "A card or resource alone takes more than `LOADED_TOKENS_MAX`. Nothing was loaded or unloaded; the tool can be called all the same.";
    GateAddressLimit, "gate.address_limit",
        "Too many requests, or too many wrong keys, from one network address. Wait as long as `Retry-After` says.";
    GateCallerLimit, "gate.caller_limit",
        "The caller made more requests than `serve.calls_per_minute`. Wait as long as `Retry-After` says.";
    GateHost, "gate.host",
        "The request was sent to a host name that is not a name of this server. List it in `serve.hosts`.";
    GateOrigin, "gate.origin",
        "A web page of another origin made the request. List the origin in `serve.origins` if it may.";
    GateRequest, "gate.request",
        "The request shows its token in a way that is not accepted: twice, in the address, or in another scheme than `Bearer`.";
    GateRole, "gate.role",
        "The key is for the other door: agents' keys call tools, operators' keys answer questions.";
    GateScope, "gate.scope",
        "The token lacks a scope of `oauth.scopes`. Ask the issuer for it.";
    GateSession, "gate.session",
        "There is no such session for this caller. Begin a new one.";
    GateSessionLimit, "gate.session_limit",
        "The session limit of the caller or of the server is reached, and every session has a call in flight. End one, or wait as long as `Retry-After` says.";
    GateToken, "gate.token",
        "The request shows no key or token, or one that is not valid: wrong, revoked, expired, or issued for another server.";
    GateUnavailable, "gate.unavailable",
        "The server cannot look up keys at the moment, so it accepts no request. The operator sees why.";
    GitFailed, "git.failed",
        "git ended with an error. The message has its own words, cleaned and shortened.";
    HostDenied, "host.denied",
        "The host lists of the caller, or rules, leave none of the hosts that the tool may reach. It did not run; only the operator can change that.";
    HttpDenied, "http.denied",
        "The address may not be reached, or the connection takes no request of that kind. Only the operator can change that.";
    HttpFailed, "http.failed",
        "The request was allowed and did not work, or its reply does not fit the request.";
    JailUnavailable, "jail.unavailable",
        "The fence around child processes is not available on this machine, or could not be put up. The program did not run; `ringfence doctor` says what is missing.";
    JobTooMany, "job.too_many",
        "The caller has as many background jobs running as `toolbox.jobs_per_caller_max` allows. Cancel one, or wait for one to end.";
    JobUnavailable, "job.unavailable",
        "The records of background jobs cannot be read or written just now, so nothing runs. The operator sees why.";
    JobUnknown, "job.unknown",
        "The caller has no background job of that id.";
    LevelDenied, "level.denied",
        "The caller's level or autonomy does not allow it.";
    LimitExceeded, "limit.exceeded",
        "A limit on the caller's calls is used up. It did not run; the message says when to try again.";
    LimitUnavailable, "limit.unavailable",
        "The caller's usage cannot be read or written just now, so nothing runs. The operator sees why.";
    LocalPassFailed, "local_pass.failed",
        "The tool did not pass its own test, so it stays a draft.";
    LocalPassNotTried, "local_pass.not_tried",
        "The tool could not be tested: a host or a folder that its test needs is not available here. This is no failure of the tool and is not recorded.";
    MaskUnavailable, "mask.unavailable",
        "The secrets of the call are too many or too long to be masked, so nothing may leave.";
    PolicyHostPattern, "policy.host_pattern",
        "A host pattern is not a host name, `*.name` or `*`.";
    PolicyOverlap, "policy.overlap",
        "After merging, a class is both allowed and denied. Remove it from one of the lists.";
    PolicyProfileCycle, "policy.profile_cycle",
        "A profile extends itself, directly or through others.";
    PolicyProfileDepth, "policy.profile_depth",
        "A chain of profiles is longer than `PROFILE_DEPTH_MAX`.";
    PolicyProfileUnknown, "policy.profile_unknown",
        "No profile of that name exists in the operator's file.";
    PowerBasePath, "power.base_path",
        "The folder the tool names may not be used: it is, holds or lies in Ringfence's own home folder, or it leads upwards. It did not run.";
    PowerUnavailable, "power.unavailable",
        "Something the tool was granted is not available: its folder, or the certificates of the network. It did not run.";
    ProcessTimeout, "process.timeout",
        "The program took longer than its time limit. It was killed with everything it started.";
    ProgramMissing, "program.missing",
        "The program that a native tool runs is not installed where Ringfence runs. Install it.";
    RequirementMissing, "requirement.missing",
        "An environment variable the tool names is unset, empty or blank. Set it.";
    RequirementNotGranted, "requirement.not_granted",
        "The owner has not granted a variable to the tool. `ringfence secrets grant TOOL NAME` does.";
    RuleDenied, "rule.denied",
        "A rule of the operator forbids this call.";
    RuleUnevaluable, "rule.unevaluable",
        "A rule could not be evaluated for these arguments, so it denies. Pass the arguments that the rule reads, in the right type.";
    SandboxBroken, "sandbox.broken",
        "The sandbox failed in a way no limit explains. The call is lost, the worker was replaced.";
    SandboxBusy, "sandbox.busy",
        "Every sandbox worker is full and so is the queue. Try again later.";
    SandboxClosed, "sandbox.closed",
        "The sandbox is shutting down.";
    SandboxConsoleBytes, "sandbox.console_bytes",
        "The script wrote more bytes to `console` than its limit.";
    SandboxConsoleLines, "sandbox.console_lines",
        "The script wrote more lines to `console` than its limit.";
    SandboxCpu, "sandbox.cpu",
        "The script used up its processor time. Waiting for a host call does not count.";
    SandboxDeadlock, "sandbox.deadlock",
        "The script awaits a promise that nothing can settle any more.";
    SandboxHostCalls, "sandbox.host_calls",
        "The script made more host calls than its limit.";
    SandboxHostOutstanding, "sandbox.host_outstanding",
        "The script had more host calls under way at one time than its limit.";
    SandboxJobTooLarge, "sandbox.job_too_large",
        "The code and the arguments of the call are too long together.";
    SandboxLayerMissing, "sandbox.layer_missing",
        "A layer of the sandbox that is required is not up on this machine. `ringfence doctor` says which and why.";
    SandboxMemory, "sandbox.memory",
        "The script used up its memory.";
    SandboxPayloadBytes, "sandbox.payload_bytes",
        "An argument or result of a host call is longer than its limit.";
    SandboxResultBytes, "sandbox.result_bytes",
        "The result is longer than its limit.";
    SandboxResultDepth, "sandbox.result_depth",
        "The result nests deeper than its limit.";
    SandboxStack, "sandbox.stack",
        "The script used up the native stack.";
    SandboxStart, "sandbox.start",
        "A sandbox worker did not start. The operator sees why.";
    SandboxWaited, "sandbox.waited",
        "No sandbox worker became free in time. Try again later.";
    SandboxWall, "sandbox.wall",
        "The call took longer than its time limit, waiting included.";
    SandboxWork, "sandbox.work",
        "The script ran more statements than its limit.";
    SandboxWorkerHung, "sandbox.worker_hung",
        "The sandbox worker did not answer in time and was replaced. Trying again may help.";
    SandboxWorkerInDoubt, "sandbox.worker_in_doubt",
        "The sandbox worker broke its protocol and was replaced.";
    SandboxWorkerLost, "sandbox.worker_lost",
        "The sandbox worker ended during the call. Trying again may help.";
    ScriptDiverged, "script.diverged",
        "A script that continued after a person's answer made other calls than before. Nothing more ran; make the call again to start over.";
    ScriptIllegalAccess, "script.illegal_access",
        "The script uses a feature that scripts do not have. It did not run; the answer says what, where, and what to write instead.";
    ScriptJournal, "script.journal",
        "The journal of a script could not be written or read. The script was stopped: continuing might repeat calls.";
    ScriptRuntime, "script.runtime_error",
        "The script threw an error, or reached one of its limits other than time.";
    ScriptSyntax, "script.syntax_error",
        "The script does not parse. It did not run; the answer says where.";
    ScriptTimeout, "script.timeout",
        "The script, or the tools it called, used up their time.";
    ScriptTool, "script.tool_error",
        "A tool the script called failed, and the script did not catch it.";
    SecretsUnavailable, "secrets.unavailable",
        "The file of secrets cannot be used: it is unreadable, or others can read it. The operator sees why.";
    ServerChanged, "server.changed",
        "The MCP server changed the tool since its owner accepted it. It did not run; the owner decides with `ringfence servers review`.";
    ServerFailed, "server.failed",
        "The tool of an MCP server says that it failed. The answer has its own words.";
    ServerProtocol, "server.protocol",
        "An MCP server sent something that is not its protocol, or more than a bound allows. The operator sees what.";
    ServerRefused, "server.refused",
        "An MCP server answered the call with an error of the protocol.";
    ServerTimeout, "server.timeout",
        "An MCP server did not answer within `call_timeout_ms`. The call was cancelled there; it may have run.";
    ServerUnavailable, "server.unavailable",
        "The MCP server of the tool is not reachable, is held, or needs a sign-in. The message says when it is tried again; `ringfence servers show NAME` says why.";
    SqlFailed, "sql.failed",
        "The database says that the statement or its values are wrong, or the file is no database. The message has its words.";
    SqlRefused, "sql.refused",
        "The statement does more than the tool, the session or the connection allows. Nothing was changed.";
    SqlTimeout, "sql.timeout",
        "The statement took too long, or waited for another writer, and was stopped. Nothing of it was kept.";
    StoreUnavailable, "store.unavailable",
        "The database that several nodes share does not answer, so nothing runs. The operator sees why; try again later.";
    ToolDraft, "tool.draft",
        "The tool has not passed its Local Pass, or was edited since. Publish it.";
    ToolNotExposed, "tool.not_exposed",
        "The tool is not exposed. `ringfence expose NAME` exposes it. Only the owner is told; to others it is unknown.";
    ToolThrew, "tool.threw",
        "The tool's own code threw an error, or does not parse.";
    ToolUnavailable, "tool.unavailable",
        "The tools of the home, and what their owner granted, cannot be read just now. It did not run; the operator sees why.";
    ToolUnknown, "tool.unknown",
        "There is no tool of that name for this caller.";
}

/// The reference page.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Reason codes\n\nEvery refusal carries one of these. A code keeps its meaning for good.\n\n\
         | Code | Meaning |\n| --- | --- |\n",
    );
    for reason in Reason::ALL {
        let _ = writeln!(page, "| `{}` | {} |", reason.code(), reason.meaning());
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_sorted() {
        let codes: Vec<_> = Reason::ALL.iter().map(|reason| reason.code()).collect();
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(codes, sorted);
    }

    #[test]
    fn the_page_lists_every_code() {
        assert!(
            Reason::ALL
                .iter()
                .all(|reason| page().contains(reason.code()))
        );
    }
}
