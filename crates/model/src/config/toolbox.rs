//! The toolbox, as the operator sets it: native tools that run programs, reach
//! repositories and databases. A tool exists only if its category is enabled.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{ConnectionKind, Faults, JailConfig};
use crate::limits;
use crate::network::host_pattern::HostPattern;
use crate::word::Word as _;

crate::words! {
    /// Categories of native tools. Each category is enabled by itself.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum ToolboxCategory {
        /// Commands and background jobs.
        Terminal = "terminal",
        /// Programs given as text.
        Code = "code",
        /// Repositories.
        Git = "git",
        /// Requests and pages.
        Http = "http",
        /// Databases.
        Sql = "sql",
    }
}

/// The native tools.
///
/// Defaults ([`ToolboxConfig::standard`]): none is enabled; they work in the caller's
/// workspace and reach no host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolboxConfig {
    /// The categories that exist.
    pub enabled: BTreeSet<ToolboxCategory>,
    /// The operator's folder they work in, as `fs_base_path` names one; the workspace
    /// if absent.
    pub folder: Option<String>,
    /// The hosts that programs and repositories may reach.
    pub hosts: Vec<HostPattern>,
    /// The hosts of `[connections]`, by kind. Only a call that names one reaches it.
    pub connected: Vec<(ConnectionKind, HostPattern)>,
    /// How strong the jail around their programs must be: what `[sandbox.jail]` says.
    pub jail: JailConfig,
    /// Seconds of one call, where it does not ask for less.
    pub seconds_max: u64,
    /// Bytes of memory of one process.
    pub memory_bytes_max: u64,
    /// Processes and threads of one call.
    pub processes_max: u64,
    /// Bytes of one file that a process writes.
    pub file_bytes_max: u64,
    /// Bytes of output that are kept, of each stream.
    pub output_bytes_max: u64,
    /// Bytes that one call may receive from hosts, and send to them.
    pub network_bytes_max: u64,
    /// Background jobs of one caller that run at one time.
    pub jobs_per_caller_max: u64,
    /// Seconds of one background job.
    pub job_seconds_max: u64,
}

impl ToolboxConfig {
    /// The defaults.
    #[must_use]
    pub fn standard() -> ToolboxConfig {
        ToolboxConfig {
            enabled: BTreeSet::new(),
            folder: None,
            hosts: Vec::new(),
            connected: Vec::new(),
            jail: JailConfig::standard(),
            seconds_max: limits::TOOLBOX_SECONDS_MAX,
            memory_bytes_max: limits::TOOLBOX_MEMORY_BYTES_DEFAULT,
            processes_max: limits::TOOLBOX_PROCESSES_DEFAULT,
            file_bytes_max: limits::TOOLBOX_FILE_BYTES_DEFAULT,
            output_bytes_max: limits::TOOLBOX_OUTPUT_BYTES_DEFAULT,
            network_bytes_max: limits::TOOLBOX_NETWORK_BYTES_DEFAULT,
            jobs_per_caller_max: limits::TOOLBOX_JOBS_PER_CALLER_DEFAULT,
            job_seconds_max: limits::TOOLBOX_JOB_SECONDS_DEFAULT,
        }
    }

    /// Whether the tools of a category exist.
    #[must_use]
    pub fn has(&self, category: ToolboxCategory) -> bool {
        self.enabled.contains(&category)
    }

    /// The settings as rows, for people.
    pub(super) fn rows(&self) -> Vec<(String, String)> {
        let enabled = self.enabled.iter().map(|category| category.word());
        let hosts: Vec<_> = self.hosts.iter().map(ToString::to_string).collect();
        let folder = self.folder.as_deref();
        let rows = [
            ("enabled", super::shown::toml_list(enabled)),
            (
                "folder",
                folder.map(super::shown::toml_text).unwrap_or_default(),
            ),
            (
                "hosts",
                super::shown::toml_list(hosts.iter().map(String::as_str)),
            ),
            ("seconds_max", self.seconds_max.to_string()),
            ("memory_bytes_max", self.memory_bytes_max.to_string()),
            ("processes_max", self.processes_max.to_string()),
            ("file_bytes_max", self.file_bytes_max.to_string()),
            ("output_bytes_max", self.output_bytes_max.to_string()),
            ("network_bytes_max", self.network_bytes_max.to_string()),
            ("jobs_per_caller_max", self.jobs_per_caller_max.to_string()),
            ("job_seconds_max", self.job_seconds_max.to_string()),
        ];
        let named = |(key, value): (&str, String)| (format!("toolbox.{key}"), value);
        rows.into_iter().map(named).collect()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ToolboxFile {
    enabled: Vec<toml::Spanned<String>>,
    folder: Option<toml::Spanned<String>>,
    hosts: Vec<toml::Spanned<String>>,
    seconds_max: Option<toml::Spanned<u64>>,
    memory_bytes_max: Option<toml::Spanned<u64>>,
    processes_max: Option<toml::Spanned<u64>>,
    file_bytes_max: Option<toml::Spanned<u64>>,
    output_bytes_max: Option<toml::Spanned<u64>>,
    network_bytes_max: Option<toml::Spanned<u64>>,
    jobs_per_caller_max: Option<toml::Spanned<u64>>,
    job_seconds_max: Option<toml::Spanned<u64>>,
}

impl Faults<'_> {
    /// `[toolbox]`.
    pub(super) fn toolbox(&mut self, file: ToolboxFile) -> ToolboxConfig {
        let mut toolbox = ToolboxConfig::standard();
        for word in &file.enabled {
            toolbox
                .enabled
                .extend(self.read_word::<ToolboxCategory>("enabled", Some(word)));
        }
        if let Some(folder) = &file.folder
            && folder.get_ref().trim().is_empty()
        {
            let fix = "name a folder, or remove the line for the workspace".to_owned();
            self.say(folder, "`folder` is empty".to_owned(), Some(fix));
        }
        toolbox.folder = file.folder.map(toml::Spanned::into_inner);
        toolbox.hosts = self.hosts(&file.hosts);
        let numbers = [
            (
                "seconds_max",
                file.seconds_max,
                1..=limits::TOOLBOX_SECONDS_MAX,
                &mut toolbox.seconds_max,
            ),
            (
                "memory_bytes_max",
                file.memory_bytes_max,
                limits::TOOLBOX_MEMORY_BYTES_MIN..=limits::TOOLBOX_MEMORY_BYTES_MAX,
                &mut toolbox.memory_bytes_max,
            ),
            (
                "processes_max",
                file.processes_max,
                1..=limits::TOOLBOX_PROCESSES_MAX,
                &mut toolbox.processes_max,
            ),
            (
                "file_bytes_max",
                file.file_bytes_max,
                1..=limits::TOOLBOX_FILE_BYTES_MAX,
                &mut toolbox.file_bytes_max,
            ),
            (
                "output_bytes_max",
                file.output_bytes_max,
                1..=limits::TOOLBOX_OUTPUT_BYTES_MAX,
                &mut toolbox.output_bytes_max,
            ),
            (
                "network_bytes_max",
                file.network_bytes_max,
                1..=limits::TOOLBOX_NETWORK_BYTES_MAX,
                &mut toolbox.network_bytes_max,
            ),
            (
                "jobs_per_caller_max",
                file.jobs_per_caller_max,
                1..=limits::TOOLBOX_JOBS_PER_CALLER_MAX,
                &mut toolbox.jobs_per_caller_max,
            ),
            (
                "job_seconds_max",
                file.job_seconds_max,
                1..=limits::TOOLBOX_JOB_SECONDS_MAX,
                &mut toolbox.job_seconds_max,
            ),
        ];
        for (name, given, range, into) in numbers {
            *into = self.read_number(name, given, range).unwrap_or(*into);
        }
        toolbox
    }
}
