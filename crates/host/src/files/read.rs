//! The read group, but for the functions that walk a tree.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::io;

use cap_std::fs::MetadataExt as _;
use serde_json::{Value, json};

use crate::files::Files;
use crate::files::answer::{Done, Items};
use crate::files::argument::{self, FileArguments, Options};
use crate::files::limit;
use crate::files::line::lines;
use crate::files::open;
use crate::files::pattern::{Case, Expression, PatternError};
use crate::files::refusal::{PathPurpose, PathRefusal, shown};

const TOO_MANY_LINES: &str = "too-many-lines";
const TAB: &str = "\t";

/// `readText(path)`: the whole file.
pub(crate) fn read_text(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let text = text(files, arguments, 0)?;
    let length = text.len();
    Ok(Done::from_content(text, length))
}

/// `list(dir = '.')`: direct children, by name. A missing folder has none.
pub(crate) fn list(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let place = files.roots.readable(arguments.raw_path_or(0, ".")?)?;
    let refusal = |error: &io::Error| PathRefusal::io(PathPurpose::Read, &place.display, error);
    let entries = place.root.open_dir(&place.relative);
    let entries = match entries.and_then(|folder| folder.entries()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Done::plain(Vec::<Value>::new()));
        }
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            let message = format!("not a folder: {}", shown(&place.display));
            return Err(PathRefusal::invalid("not-a-directory", message));
        }
        Err(error) => return Err(refusal(&error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        files.in_time()?;
        // Bounded while it is listed: a folder with millions of names is never held.
        names.push(entry.map_err(|error| refusal(&error))?.file_name());
        if names.len() > limit::LIST_ENTRIES_MAX {
            let message = format!("more than {} entries", limit::LIST_ENTRIES_MAX);
            return Err(PathRefusal::runtime("too-many-entries", message));
        }
    }
    names.sort();
    let mut items = Items::new(limit::LIST_ENTRIES_MAX, "too-many-entries");
    for name in names {
        items.push_text(files.roots.display(&place.absolute.join(name)))?;
    }
    Ok(Done::plain(items.into_value()))
}

/// `exists(path)`: an escaping path does not exist.
pub(crate) fn exists(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let place = match files.roots.readable(arguments.raw_path(0)?) {
        Ok(place) => place,
        // A script may ask about any path. Whether something is outside is not told.
        Err(refusal) if refusal.reason == "path-escapes-base" => return Ok(Done::plain(false)),
        Err(refusal) => return Err(refusal),
    };
    Ok(Done::plain(place.root.metadata(&place.relative).is_ok()))
}

/// `stat(path)`: `{size, mtime, directory}`, the time in milliseconds.
pub(crate) fn stat(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let place = files.roots.readable(arguments.raw_path(0)?)?;
    let metadata = place.root.metadata(&place.relative);
    let metadata =
        metadata.map_err(|error| PathRefusal::io(PathPurpose::Read, &place.display, &error))?;
    let seconds = metadata.mtime().saturating_mul(1_000);
    let mtime = seconds.saturating_add(metadata.mtime_nsec() / 1_000_000);
    Ok(Done::plain(json!({
        "size": metadata.len(),
        "mtime": mtime,
        "directory": metadata.is_dir(),
    })))
}

/// `lineCount(path)`.
pub(crate) fn line_count(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let text = text(files, arguments, 0)?;
    Ok(Done::from_content(lines(&text).count(), text.len()))
}

/// `grep(pattern, path, {caseInsensitive, limit, numbered}?)`.
pub(crate) fn grep(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let raw_pattern = arguments.text(0)?.filter(|pattern| !pattern.is_empty());
    let Some(raw_pattern) = raw_pattern else {
        return Err(PathRefusal::invalid(
            "grep-pattern-required",
            "pattern required",
        ));
    };
    let options = arguments.options(2)?;
    let case = Case::from_flag(options.flag("caseInsensitive"));
    let pattern = Expression::new(&raw_pattern, case).map_err(|PatternError(what)| {
        PathRefusal::invalid("grep-invalid-pattern", format!("invalid pattern: {what}"))
    })?;
    let lines_max = options.bound("limit", limit::GREP_LINES_MAX)?;
    let is_numbered = options.flag("numbered");
    let text = text(files, arguments, 1)?;
    let mut items = Items::new(lines_max, TOO_MANY_LINES);
    for (index, line) in lines(&text).enumerate() {
        files.in_time_at(index, line)?;
        // A search through many files skips such a line. Here the file was named, and no line of
        // it is left out in silence.
        if !pattern.takes(line) {
            return Err(line_too_long(index));
        }
        if !pattern.regex.is_match(line) {
            continue;
        }
        match is_numbered {
            true => items.push_text(format!("{}:{line}", index + 1))?,
            false => items.push_text(line)?,
        }
        if items.count() >= lines_max {
            break;
        }
    }
    Ok(Done::from_content(items.into_value(), text.len()))
}

/// `slice(path, start?, end?)`: lines from zero, the end left out, negative
/// numbers from the end, as `Array.prototype.slice` does.
pub(crate) fn slice(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let (start, end) = (arguments.whole(1)?, arguments.whole(2)?);
    let text = text(files, arguments, 0)?;
    let count = lines(&text).count();
    let start = position(start.unwrap_or(0), count);
    let end = end.map_or(count, |end| position(end, count));
    let mut items = Items::new(limit::LINES_MAX, TOO_MANY_LINES);
    for line in lines(&text).take(end).skip(start) {
        items.push_text(line)?;
    }
    Ok(Done::from_content(items.into_value(), text.len()))
}

/// `cut(path, {fields, delimiter?, regex?})`: fields from one.
pub(crate) fn cut(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let options = arguments.options(1)?;
    if options.is_absent() {
        return Err(PathRefusal::invalid(
            "missing-args",
            "path and options required",
        ));
    }
    let fields = fields(options)?;
    let delimiter = Delimiter::new(options)?;
    let text = text(files, arguments, 0)?;
    let field_max = fields.iter().copied().max().unwrap_or(0);
    let mut items = Items::new(limit::LINES_MAX, TOO_MANY_LINES);
    for (index, line) in lines(&text).enumerate() {
        files.in_time_at(index, line)?;
        let parts = delimiter.parts(files, index, line, field_max)?;
        let chosen = fields
            .iter()
            .map(|field| parts.get(field.saturating_sub(1)).copied().unwrap_or(""));
        let glue = delimiter.glue();
        // Before it is joined: a long glue must not be multiplied first.
        let glue_bytes = glue.len().saturating_mul(fields.len());
        if glue_bytes > limit::ANSWER_BYTES_MAX {
            items.push("", glue_bytes)?;
        }
        items.push_text(chosen.collect::<Vec<_>>().join(glue))?;
    }
    Ok(Done::from_content(items.into_value(), text.len()))
}

/// `sort(path, {reverse, numeric, caseInsensitive, unique}?)`. Lines are compared
/// by their code points; what is no number stays last either way round.
pub(crate) fn sort(files: &Files, arguments: FileArguments<'_>) -> Result<Done, PathRefusal> {
    let options = arguments.options(1)?;
    let text = text(files, arguments, 0)?;
    let mut kept: Vec<&str> = lines(&text).take(limit::LINES_MAX + 1).collect();
    if kept.len() > limit::LINES_MAX {
        let message = format!("more than {} lines", limit::LINES_MAX);
        return Err(PathRefusal::runtime(TOO_MANY_LINES, message));
    }
    if options.flag("unique") {
        let mut seen = HashSet::new();
        kept.retain(|line| seen.insert(*line));
    }
    let is_reverse = options.flag("reverse");
    let turned = |ordering: Ordering| match is_reverse {
        true => ordering.reverse(),
        false => ordering,
    };
    if options.flag("numeric") {
        let mut numbered: Vec<_> = kept.iter().map(|line| (number(line), *line)).collect();
        numbered.sort_by(|one, other| match (one.0, other.0) {
            // Total, so that sorting is the same on every machine.
            (Some(one), Some(other)) => turned(one.total_cmp(&other)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => turned(one.1.cmp(other.1)),
        });
        kept = numbered.into_iter().map(|(_, line)| line).collect();
    } else if options.flag("caseInsensitive") {
        let mut folded: Vec<_> = kept
            .iter()
            .map(|line| (line.to_lowercase(), *line))
            .collect();
        folded.sort_by(|one, other| turned(one.0.cmp(&other.0)));
        kept = folded.into_iter().map(|(_, line)| line).collect();
    } else {
        kept.sort_by(|one, other| turned(one.cmp(other)));
    }
    let mut items = Items::new(limit::LINES_MAX, TOO_MANY_LINES);
    for line in kept {
        items.push_text(line)?;
    }
    Ok(Done::from_content(items.into_value(), text.len()))
}

/// What `cut` cuts at.
enum Delimiter<'a> {
    Text(Cow<'a, str>),
    Expression(Expression),
}

impl<'a> Delimiter<'a> {
    /// `regex: true` makes `delimiter` an expression; `regex` may also hold one.
    fn new(options: Options<'a>) -> Result<Delimiter<'a>, PathRefusal> {
        let invalid = |what: &str| {
            PathRefusal::invalid(
                "cut-invalid-delimiter",
                format!("invalid delimiter: {what}"),
            )
        };
        let delimiter = options.text("delimiter")?;
        if delimiter.as_deref() == Some("") {
            return Err(invalid("it is empty"));
        }
        let delimiter = delimiter.unwrap_or(Cow::Borrowed(TAB));
        let raw_pattern = match options.get("regex") {
            Value::String(pattern) if !pattern.is_empty() => Some(Cow::Borrowed(pattern.as_str())),
            _ if options.flag("regex") => Some(delimiter.clone()),
            _ => None,
        };
        match raw_pattern {
            Some(raw_pattern) => Expression::new(&raw_pattern, Case::Sensitive)
                .map(Delimiter::Expression)
                .map_err(|PatternError(what)| invalid(&what)),
            None => Ok(Delimiter::Text(delimiter)),
        }
    }

    /// The first parts of a line, as many as are wanted.
    fn parts<'line>(
        &self,
        files: &Files,
        index: usize,
        line: &'line str,
        count: usize,
    ) -> Result<Vec<&'line str>, PathRefusal> {
        let expression = match self {
            Delimiter::Text(text) => return Ok(line.split(text.as_ref()).take(count).collect()),
            Delimiter::Expression(expression) => expression,
        };
        if !expression.takes(line) {
            return Err(line_too_long(index));
        }
        let mut parts = Vec::new();
        for part in expression.regex.split(line).take(count) {
            // Each part may need a look at all of the rest.
            files.in_time_at(parts.len(), line)?;
            parts.push(part);
        }
        Ok(parts)
    }

    fn glue(&self) -> &str {
        match self {
            Delimiter::Text(text) => text,
            Delimiter::Expression(_) => TAB,
        }
    }
}

fn fields(options: Options<'_>) -> Result<Vec<usize>, PathRefusal> {
    let values = match options.get("fields") {
        Value::Null => return Err(PathRefusal::invalid("fields-required", "fields required")),
        Value::Array(values) => values,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            let message = "fields must be an array of numbers";
            return Err(PathRefusal::invalid("fields-not-array", message));
        }
    };
    let wrong = || {
        let count_max = limit::CUT_FIELDS_MAX;
        let message = format!("between 1 and {count_max} fields, each a number from 1");
        PathRefusal::invalid("cut-fields-required", message)
    };
    if values.is_empty() || values.len() > limit::CUT_FIELDS_MAX {
        return Err(wrong());
    }
    let field = |value: &Value| {
        let field = argument::whole(value).ok().flatten();
        let field = field.and_then(|field| usize::try_from(field).ok());
        field.filter(|field| *field > 0).ok_or_else(wrong)
    };
    values.iter().map(field).collect()
}

fn text(files: &Files, arguments: FileArguments<'_>, index: usize) -> Result<String, PathRefusal> {
    files.in_time()?;
    open::text(&files.roots.readable(arguments.raw_path(index)?)?)
}

fn line_too_long(index: usize) -> PathRefusal {
    let message = format!("line {} is too long for the pattern", index + 1);
    PathRefusal::runtime("line-too-long", message)
}

/// A position among lines: negative from the end, never outside.
fn position(wanted: i64, count: usize) -> usize {
    let distance = usize::try_from(wanted.unsigned_abs()).unwrap_or(usize::MAX);
    match wanted < 0 {
        true => count.saturating_sub(distance),
        false => distance.min(count),
    }
}

fn number(line: &str) -> Option<f64> {
    let number: f64 = line.trim().parse().ok()?;
    number.is_finite().then_some(number)
}
