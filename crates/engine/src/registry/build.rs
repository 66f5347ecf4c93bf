//! How a snapshot is built: settings, documents and the store read together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::config::Config;
use model::document::environment::Environment;
use model::document::finding::{Code, Finding};
use model::document::json::Lines;
use model::document::safety::Source;
use model::document::{self, FileShape};
use model::govern::consent::Granted;
use model::govern::tool_policy::ToolPolicy;
use model::govern::trust::TrustState;
use model::policy::Baseline;
use model::policy::assessment::{self, UsableDocument};
use model::word::Word as _;
use store::{PublicationSnapshot, ServerRecords, Store, ToolFile, ToolFolder, parallel};

use crate::catalog::{Bundled, Catalog, Natives, Toolbox};
use crate::error::EngineError;
use crate::native::Native;
use crate::servers::ServerTools;
use crate::settings::{Candidate, Settings};
use crate::snapshot::{ShadowSnapshot, Snapshot, next_serial};
use crate::tool::{SetAside, Tool, ToolBody, ToolState};

/// Files that were read before, so that each is parsed and judged once.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// What they were judged on.
    baseline: Option<Baseline>,
    servers: Option<Arc<ServerTools>>,
    files: BTreeMap<String, Arc<FileRead>>,
}

/// What a file was found to hold.
#[derive(Debug)]
struct FileRead {
    text: Arc<str>,
    name: Option<String>,
    /// The one document, unless something stands in its way.
    usable: Option<Arc<UsableDocument>>,
    findings: Vec<Finding>,
}

/// What trust leaves of the levels the settings give.
fn put_earned(config: &mut Config, states: &BTreeMap<String, TrustState>) {
    let trust = &config.trust;
    let earned = states.iter();
    let earned = earned.filter_map(|(name, state)| Some((name.clone(), state.earned(trust)?)));
    config.access.earned = earned.collect();
    // A caller without a record has what a new one starts with.
    config.access.unproven = TrustState::initial(trust, 0).earned(trust);
}

/// The bundled tools the settings offer.
fn preset(config: &Config, catalog: &Catalog) -> Result<Vec<String>, EngineError> {
    match &config.exposure.preset {
        None => Ok(Vec::new()),
        Some(name) => catalog.preset(name),
    }
}

pub(super) fn effective_baseline(config: &Config) -> Result<Baseline, EngineError> {
    let baseline = config.effective_baseline();
    baseline.map_err(|conflict| EngineError::Baseline(conflict.to_string()))
}

pub(super) fn take(
    folder: &ToolFolder,
    store: &Store,
    catalog: &Arc<Catalog>,
    (settings, earned, policy): (&Arc<Settings>, &BTreeMap<String, TrustState>, &ToolPolicy),
    known: &mut Known,
) -> Result<Snapshot, EngineError> {
    let mut config = settings.config.clone();
    put_earned(&mut config, earned);
    // The program's own policy holds under every settings, also those that are only tried.
    config
        .add_rules(policy.rules())
        .map_err(|fault| EngineError::Settings(fault.message))?;
    let baseline = effective_baseline(&config)?;
    let preset = preset(&config, catalog)?;
    let shadow = match &settings.shadow {
        Some(Candidate::Good { file, settings }) => {
            // What is wrong with it is said when it is settled.
            let beside = (settings, earned, policy);
            // A copy: a candidate on another baseline would throw out what is known.
            let taken = take(folder, store, catalog, beside, &mut known.clone());
            let file = file.clone();
            taken
                .ok()
                .map(|snapshot| Arc::new(ShadowSnapshot { file, snapshot }))
        }
        Some(Candidate::Broken { .. }) | None => None,
    };
    let natives = Natives::on(&baseline, &config);
    let toolbox = Toolbox::on(&baseline, &config.toolbox);
    let mut snapshot = Snapshot {
        serial: next_serial(),
        natives,
        toolbox,
        servers: Arc::default(),
        config,
        settings: Arc::clone(settings),
        shadow,
        bundled: Bundled::new(catalog, &baseline),
        baseline,
        own: BTreeMap::new(),
        grants: Arc::default(),
        set_aside: Vec::new(),
        preset,
        owed: None,
        unread: None,
    };
    let standing = store.publications().all()?;
    snapshot.grants = Arc::new(standing.grants.clone());
    // Files are judged on the baseline. On another one each verdict may differ.
    if known.baseline.as_ref() != Some(&snapshot.baseline) {
        *known = Known {
            baseline: Some(snapshot.baseline.clone()),
            servers: None,
            files: BTreeMap::new(),
        };
    }
    read_tools(&mut snapshot, (folder, store), catalog, &standing, known)?;
    take_servers(&mut snapshot, &standing.servers, known.servers.as_ref());
    known.servers = Some(Arc::clone(&snapshot.servers));
    Ok(snapshot)
}

/// The tools of the folder: each file read or known, each name claimed once.
fn read_tools(
    snapshot: &mut Snapshot,
    (folder, store): (&ToolFolder, &Store),
    catalog: &Catalog,
    standing: &PublicationSnapshot,
    known: &mut Known,
) -> Result<(), EngineError> {
    let mut claims: BTreeMap<String, Vec<Tool>> = BTreeMap::new();
    // Only files that are still there come back, so what is known does not grow.
    let before = std::mem::take(&mut known.files);
    claim_files(
        snapshot,
        folder.scan()?,
        (standing, &before),
        &mut claims,
        known,
    )?;
    let elsewhere = published_elsewhere(store, standing, snapshot, &claims)?;
    claim_files(snapshot, elsewhere, (standing, &before), &mut claims, known)?;
    for (name, tools) in claims {
        claim_name(snapshot, catalog, &name, tools);
    }
    snapshot.set_aside.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(())
}

/// Reads files that were not read before, and notes who claims which name.
fn claim_files(
    snapshot: &mut Snapshot,
    files: Vec<ToolFile>,
    (standing, before): (&PublicationSnapshot, &BTreeMap<String, Arc<FileRead>>),
    claims: &mut BTreeMap<String, Vec<Tool>>,
    known: &mut Known,
) -> Result<(), EngineError> {
    // On all processors: a command that starts reads a folder of a thousand documents
    // while a person waits.
    let read = |file: &ToolFile| read_file(file, before, &snapshot.baseline);
    let reads = parallel::map(&files, read).ok_or(EngineError::Reader)?;
    for (file, read) in files.into_iter().zip(reads) {
        let read = match read {
            Ok(read) => read,
            Err(aside) => {
                snapshot.set_aside.push(aside);
                continue;
            }
        };
        match tool(&file.file_name, &read, standing) {
            Ok(tool) => {
                let name = tool.usable.document.name.clone();
                claims.entry(name).or_default().push(tool);
            }
            Err(aside) => snapshot.set_aside.push(aside),
        }
        known.files.insert(file.file_name, read);
    }
    Ok(())
}

/// Documents that other nodes published and this home has no file of, as they were published.
/// A file of the same name here comes first: its author is at work on it.
fn published_elsewhere(
    store: &Store,
    standing: &PublicationSnapshot,
    snapshot: &Snapshot,
    claims: &BTreeMap<String, Vec<Tool>>,
) -> Result<Vec<ToolFile>, EngineError> {
    let mut found = Vec::new();
    if !store.is_shared() {
        return Ok(found);
    }
    let aside = snapshot.set_aside.iter();
    let aside: BTreeSet<&str> = aside.filter_map(|aside| aside.name.as_deref()).collect();
    let mut published: Vec<_> = standing.published.iter().collect();
    published.sort();
    for (name, digest) in published {
        if claims.contains_key(name) || aside.contains(name.as_str()) {
            continue;
        }
        if let Some((kept, text)) = store.publications().text(name)?
            // Another text than the published one does not run.
            && kept == *digest
        {
            found.push(ToolFile {
                file_name: format!("{name}.json"),
                text: Ok(Arc::from(text)),
            });
        }
    }
    Ok(found)
}

/// The tools of servers, as far as nothing else has their names.
pub(super) fn take_servers(
    snapshot: &mut Snapshot,
    records: &ServerRecords,
    before: Option<&Arc<ServerTools>>,
) {
    let baseline = &snapshot.baseline;
    let own = own_names(snapshot);
    let made = ServerTools::make(&snapshot.config, records, baseline, before, &own);
    snapshot.servers = made;
}

/// The names of all tools that are no server's.
pub(crate) fn own_names(snapshot: &Snapshot) -> Vec<&str> {
    let natives = Native::ALL.iter().map(|native| native.name());
    let natives = natives.chain(snapshot.toolbox.names());
    let own = snapshot.own.keys().map(String::as_str);
    own.chain(snapshot.bundled.names()).chain(natives).collect()
}

/// One name, one tool: who claims it together with others, or takes a bundled
/// name for something else, is set aside.
fn claim_name(snapshot: &mut Snapshot, catalog: &Catalog, name: &str, mut tools: Vec<Tool>) {
    let file = |tool: &Tool| format!("{}.json", tool.file.as_deref().unwrap_or(""));
    if tools.len() > 1 {
        let files: Vec<_> = tools.iter().map(file).collect();
        let message = format!("the name `{name}` is claimed by {}", files.join(" and "));
        let aside = |file: String| set_aside(&file, Some(name), &message);
        snapshot.set_aside.extend(files.into_iter().map(aside));
        // Neither is exposed; a bundled tool of that name stays what it is.
        return;
    }
    let Some(tool) = tools.pop() else { return };
    match catalog.digest(name) {
        None if Native::named(name).is_some() => {
            let part = Native::named(name).map_or("", |native| native.feature().words());
            let message = format!("`{name}` is the name of a {part} tool; choose another");
            let aside = set_aside(&file(&tool), Some(name), &message);
            snapshot.set_aside.push(aside);
        }
        // Only while its category is enabled: until then the name is free.
        None => match snapshot.toolbox.category(name) {
            Some(category) => {
                let category = category.word();
                let message = format!(
                    "`{name}` is the name of a toolbox tool, and `[toolbox]` enables `{category}`; rename this tool, or take `{category}` out of `toolbox.enabled`"
                );
                let aside = set_aside(&file(&tool), Some(name), &message);
                snapshot.set_aside.push(aside);
            }
            None => {
                snapshot.own.insert(name.to_owned(), tool);
            }
        },
        // A copy of the bundled tool is the bundled tool.
        Some(shipped) if tool.usable.facts.digest.to_string() == shipped => {}
        Some(_) => {
            let message = format!("`{name}` is the name of a bundled tool; choose another");
            let aside = set_aside(&file(&tool), Some(name), &message);
            snapshot.set_aside.push(aside);
        }
    }
}

fn set_aside(file: &str, name: Option<&str>, message: &str) -> SetAside {
    SetAside {
        file: file.to_owned(),
        name: name.map(str::to_owned),
        findings: vec![Finding::error(Code::SpecInvariant, "", message.to_owned())],
    }
}

fn read_file(
    file: &ToolFile,
    known: &BTreeMap<String, Arc<FileRead>>,
    baseline: &Baseline,
) -> Result<Arc<FileRead>, SetAside> {
    let text = match &file.text {
        Ok(text) => text,
        Err(fault) => return Err(set_aside(&file.file_name, None, &fault.to_string())),
    };
    match known.get(&file.file_name) {
        // Mostly the very same text, which need not be compared.
        Some(known) if Arc::ptr_eq(&known.text, text) || known.text == *text => {
            Ok(Arc::clone(known))
        }
        Some(_) | None => Ok(Arc::new(judged(text, baseline))),
    }
}

fn judged(text: &Arc<str>, baseline: &Baseline) -> FileRead {
    let mut parsed = document::parse(text);
    let count = parsed.items.len();
    let (Some(item), true) = (
        parsed.items.pop(),
        count == 1 && parsed.shape != FileShape::Many,
    ) else {
        let message = format!(
            "the file holds a list of {count} documents; a tool file holds one, `ringfence import` splits lists"
        );
        return FileRead {
            text: Arc::clone(text),
            name: None,
            usable: None,
            findings: vec![Finding::error(Code::SpecInvariant, "", message)],
        };
    };
    let lines = Lines::new(text);
    // Variables are checked by each call, not when a file is read.
    let assessed = assessment::assess(item, &lines, baseline, &Environment::empty(), Source::User);
    FileRead {
        text: Arc::clone(text),
        name: assessed.name,
        usable: assessed.usable.map(Arc::new),
        findings: assessed.findings,
    }
}

/// The tool of a file, or what stands in its way.
fn tool(
    file_name: &str,
    read: &FileRead,
    standing: &PublicationSnapshot,
) -> Result<Tool, SetAside> {
    match &read.usable {
        Some(usable) => Ok(Tool {
            state: stands(usable, standing),
            granted: Granted::Only(standing.grants.of(&usable.document.name, "")),
            usable: Arc::clone(usable),
            source: Source::User,
            body: ToolBody::Code,
            file: Some(file_name.trim_end_matches(".json").to_owned()),
            findings: read.findings.clone(),
        }),
        None => Err(SetAside {
            file: file_name.to_owned(),
            name: read.name.clone(),
            findings: read.findings.clone(),
        }),
    }
}

/// Only the store says what was published. A document's own `draft: true` takes
/// it back; its `draft: false` says nothing. A published tool stays published
/// when a later test of it fails: what was proved of this digest was proved.
pub(super) fn stands(usable: &UsableDocument, standing: &PublicationSnapshot) -> ToolState {
    let digest = usable.facts.digest.to_string();
    let published = standing.published.get(&usable.document.name) == Some(&digest);
    if published && usable.document.draft != Some(true) {
        return ToolState::Published;
    }
    match standing.passes.get(&digest).filter(|pass| !pass.ok) {
        Some(pass) => {
            let why = pass.error.as_ref().map(|error| error.message.clone());
            ToolState::TestFailed(why.unwrap_or_default())
        }
        None => ToolState::Draft,
    }
}
