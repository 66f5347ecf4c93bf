//! Bytes to messages. Every function here is total.

use std::collections::BTreeMap;

use crate::job::{
    Breach, CallId, ConsoleLevel, Down, Ended, GuestLine, HostAnswer, HostCallId, HostCallKind,
    HostRequest, Job, JobLimits, Payload, Rejections, RunReport, RunUsage, StopPlace, Thrown, Up,
};
use crate::walls::{Layer, LayerStatus, Walls};

use super::{FrameError, GUEST_KEY_BYTES_MAX, HELLO_MAGIC, Hello, PROTOCOL_VERSION};

/// The unread rest of a body.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(body: &'a [u8]) -> Fields<'a> {
        Fields { rest: body }
    }

    pub(super) fn end(&self) -> Result<(), FrameError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(FrameError::Trailing)
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (array, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(FrameError::Truncated)?;
        self.rest = rest;
        Ok(*array)
    }

    fn u8(&mut self) -> Result<u8, FrameError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    fn u16(&mut self) -> Result<u16, FrameError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, FrameError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, FrameError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn i64(&mut self) -> Result<i64, FrameError> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// A run of bytes, borrowed: a claim beyond what is here ends before any copy.
    fn bytes(&mut self) -> Result<&'a [u8], FrameError> {
        let length = self.u32()? as usize;
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(FrameError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<String, FrameError> {
        let text = str::from_utf8(self.bytes()?).map_err(|_| FrameError::NotText)?;
        Ok(text.to_owned())
    }

    fn texts(&mut self) -> Result<Vec<String>, FrameError> {
        let count = self.u32()? as usize;
        // Each text is a length at least, so a claim is checked against what is here.
        if count > self.rest.len() / size_of::<u32>() {
            return Err(FrameError::Truncated);
        }
        (0..count).map(|_| self.text()).collect()
    }
}

pub(super) fn hello(fields: &mut Fields<'_>) -> Result<Hello, FrameError> {
    // The first byte is a tag that no other message has, so an ordinary frame is no hello.
    if fields.u8()? != 0 || fields.u32()? != HELLO_MAGIC {
        return Err(FrameError::NotHello);
    }
    match fields.u16()? {
        PROTOCOL_VERSION => {}
        other => return Err(FrameError::Version(other)),
    }
    let guest_key = fields.text()?;
    if guest_key.len() > GUEST_KEY_BYTES_MAX {
        return Err(FrameError::NotHello);
    }
    Ok(Hello {
        guest_key,
        walls: walls(fields)?,
    })
}

fn walls(fields: &mut Fields<'_>) -> Result<Walls, FrameError> {
    let landlock_abi = fields.u8()?;
    let mut layers = BTreeMap::new();
    for _ in 0..fields.u32()? {
        let number = fields.u8()?;
        let layer = Layer::from_number(number).ok_or(FrameError::UnknownTag(number))?;
        let standing = match fields.u8()? {
            1 => LayerStatus::Up,
            0 => LayerStatus::Missing(fields.text()?),
            other => return Err(FrameError::UnknownTag(other)),
        };
        // In order and once each: one way to write it, and no more turns than layers.
        if layers
            .last_key_value()
            .is_some_and(|(last, _)| *last >= layer)
        {
            return Err(FrameError::UnknownTag(number));
        }
        layers.insert(layer, standing);
    }
    Ok(Walls {
        landlock_abi,
        layers,
    })
}

pub(super) fn down(fields: &mut Fields<'_>) -> Result<Down, FrameError> {
    match fields.u8()? {
        1 => Ok(Down::Start(CallId(fields.u64()?), Box::new(job(fields)?))),
        2 => Ok(Down::Answer(
            CallId(fields.u64()?),
            HostCallId(fields.u32()?),
            answer(fields)?,
        )),
        3 => Ok(Down::Cancel(CallId(fields.u64()?))),
        other => Err(FrameError::UnknownTag(other)),
    }
}

fn job(fields: &mut Fields<'_>) -> Result<Job, FrameError> {
    Ok(Job {
        body: fields.text()?,
        globals: fields.text()?,
        declared: fields.texts()?,
        powers: fields.texts()?,
        limits: limits(fields)?,
        seed: fields.u64()?,
        now_ms: fields.i64()?,
    })
}

fn limits(fields: &mut Fields<'_>) -> Result<JobLimits, FrameError> {
    Ok(JobLimits {
        work_max: fields.u64()?,
        cpu_ms_max: fields.u32()?,
        wall_ms_max: fields.u32()?,
        memory_bytes_max: fields.u32()?,
        result_bytes_max: fields.u32()?,
        result_depth_max: fields.u32()?,
        console_lines_max: fields.u32()?,
        console_bytes_max: fields.u32()?,
        host_calls_max: fields.u32()?,
        host_outstanding_max: fields.u32()?,
        payload_bytes_max: fields.u32()?,
    })
}

fn answer(fields: &mut Fields<'_>) -> Result<HostAnswer, FrameError> {
    match fields.u8()? {
        1 => Ok(HostAnswer::Value(payload(fields)?)),
        2 => Ok(HostAnswer::Error(fields.text()?)),
        other => Err(FrameError::UnknownTag(other)),
    }
}

fn payload(fields: &mut Fields<'_>) -> Result<Payload, FrameError> {
    Ok(Payload {
        json: fields.text()?,
        bytes: fields.bytes()?.to_vec(),
    })
}

pub(super) fn up(fields: &mut Fields<'_>) -> Result<Up, FrameError> {
    match fields.u8()? {
        1 => Ok(Up::Console(CallId(fields.u64()?), console(fields)?)),
        2 => Ok(Up::Host(CallId(fields.u64()?), request(fields)?)),
        3 => Ok(Up::Ended(CallId(fields.u64()?), Box::new(report(fields)?))),
        other => Err(FrameError::UnknownTag(other)),
    }
}

fn console(fields: &mut Fields<'_>) -> Result<GuestLine, FrameError> {
    let level = match fields.u8()? {
        1 => ConsoleLevel::Log,
        2 => ConsoleLevel::Info,
        3 => ConsoleLevel::Warn,
        4 => ConsoleLevel::Error,
        5 => ConsoleLevel::Debug,
        other => return Err(FrameError::UnknownTag(other)),
    };
    Ok(GuestLine {
        level,
        text: fields.text()?,
    })
}

fn request(fields: &mut Fields<'_>) -> Result<HostRequest, FrameError> {
    let id = HostCallId(fields.u32()?);
    let kind = match fields.u8()? {
        1 => HostCallKind::Queued,
        2 => HostCallKind::Direct,
        other => return Err(FrameError::UnknownTag(other)),
    };
    Ok(HostRequest {
        id,
        kind,
        operation: fields.text()?,
        payload: payload(fields)?,
    })
}

fn report(fields: &mut Fields<'_>) -> Result<RunReport, FrameError> {
    let usage = RunUsage {
        work: fields.u64()?,
        cpu_us: fields.u64()?,
        wall_us: fields.u64()?,
        memory_bytes: fields.u64()?,
        host_calls: fields.u32()?,
    };
    let notes = fields.text()?;
    let rejections = rejections(fields)?;
    let stopped_at = stop_place(fields)?;
    let ended = match fields.u8()? {
        1 => Ended::Value(fields.text()?),
        2 => Ended::Undefined,
        3 => Ended::Threw(thrown(fields)?),
        4 => Ended::Breached(breach(fields)?),
        5 => Ended::Cancelled,
        6 => Ended::Broken(fields.text()?),
        other => return Err(FrameError::UnknownTag(other)),
    };
    Ok(RunReport {
        ended,
        usage,
        notes,
        rejections,
        stopped_at,
    })
}

fn rejections(fields: &mut Fields<'_>) -> Result<Rejections, FrameError> {
    let count = fields.u32()?;
    // The number is the worker's word, so nothing is reserved for it.
    let mut told = Vec::new();
    for _ in 0..fields.u32()? {
        told.push(thrown(fields)?);
    }
    Ok(Rejections { told, count })
}

fn stop_place(fields: &mut Fields<'_>) -> Result<Option<StopPlace>, FrameError> {
    let in_regex = match fields.u8()? {
        0 => return Ok(None),
        1 => false,
        2 => true,
        other => return Err(FrameError::UnknownTag(other)),
    };
    Ok(Some(StopPlace {
        line: fields.u32()?,
        column: fields.u32()?,
        in_regex,
    }))
}

fn thrown(fields: &mut Fields<'_>) -> Result<Thrown, FrameError> {
    Ok(Thrown {
        name: fields.text()?,
        message: fields.text()?,
        line: fields.u32()?,
        column: fields.u32()?,
        helper: match fields.u8()? {
            0 => None,
            1 => Some(fields.text()?),
            other => return Err(FrameError::UnknownTag(other)),
        },
    })
}

fn breach(fields: &mut Fields<'_>) -> Result<Breach, FrameError> {
    Ok(match fields.u8()? {
        1 => Breach::Work,
        2 => Breach::Cpu,
        3 => Breach::Wall,
        4 => Breach::Memory,
        5 => Breach::Stack,
        6 => Breach::ResultBytes,
        7 => Breach::ResultDepth,
        8 => Breach::ConsoleLines,
        9 => Breach::ConsoleBytes,
        10 => Breach::HostCalls,
        11 => Breach::HostOutstanding,
        12 => Breach::PayloadBytes,
        13 => Breach::Deadlock,
        other => return Err(FrameError::UnknownTag(other)),
    })
}
