//! From settings to the order of a supervisor: the program is found, its environment and the
//! files it is given are worked out.

use crate::environment;
use crate::fault::JailFault;
use crate::file_rules;
use crate::limit;
use crate::message::JailOrder;
use crate::program;
use crate::settings::JailSettings;

/// The order for a child with these settings. Makes its folders.
pub(crate) fn make_order(settings: &JailSettings) -> Result<JailOrder, JailFault> {
    check_command(&settings.command)?;
    let own = file_rules::make_own_folders(&settings.home)?;
    let environment = environment::build(
        &settings.environment,
        std::env::vars_os(),
        &own.home,
        &own.temporary,
        settings.network,
    )?;
    let search = environment.get("PATH").map_or("", String::as_str);
    let name = settings.command.first().map_or("", String::as_str);
    let path = program::resolve_program(name, search)?;
    let user_home = settings.user_home.as_deref();
    let user_home = user_home.and_then(|home| home.canonicalize().ok());
    let needs = program::needs(&path, search, user_home.as_deref());
    let given = file_rules::given(settings, &own.home, &needs)?;
    let mut command = settings.command.clone();
    if let (Some(first), Some(path)) = (command.first_mut(), path.to_str()) {
        path.clone_into(first);
    }
    Ok(JailOrder {
        command,
        environment,
        folder: settings.folder.clone().unwrap_or(own.home),
        rules: given.rules,
        installation: given.installation,
        own: given.own,
        declared: given.declared,
        overlays: given.overlays,
        private: given.private,
        network: settings.network,
        limits: settings.limits,
        require: settings.require,
        accept_missing: settings.accept_missing,
    })
}

fn check_command(command: &[String]) -> Result<(), JailFault> {
    let bytes: usize = command.iter().map(|word| word.len() + 1).sum();
    let sentence = if command.len() > limit::ARGUMENTS_MAX || bytes > limit::COMMAND_BYTES_MAX {
        format!(
            "the command has {} words and {bytes} bytes; at most {} and {} are allowed",
            command.len(),
            limit::ARGUMENTS_MAX,
            limit::COMMAND_BYTES_MAX
        )
    } else if command.iter().any(|word| word.contains('\0')) {
        "the command holds a NUL character; take it out".to_owned()
    } else {
        return Ok(());
    };
    Err(JailFault::Settings(sentence))
}
