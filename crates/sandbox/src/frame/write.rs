//! Messages to bytes.

use crate::job::{
    Breach, ConsoleLevel, Down, Ended, GuestLine, HostAnswer, HostCallKind, HostRequest, Job,
    JobLimits, Payload, RunReport, RunUsage, StopPlace, Thrown, Up,
};
use crate::walls::{LayerStatus, Walls};

use super::{FRAME_BYTES_MAX, FrameError, HEADER_BYTES, HELLO_MAGIC, Hello, PROTOCOL_VERSION};

/// Writes one frame: the length is filled in once the body is known.
pub(super) fn frame(
    out: &mut Vec<u8>,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), FrameError>,
) -> Result<(), FrameError> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    let written = body(out).and_then(|()| {
        let length = out.len() - start - HEADER_BYTES;
        match u32::try_from(length) {
            Ok(length) if length <= FRAME_BYTES_MAX => Ok(length),
            Ok(_) | Err(_) => Err(FrameError::TooLong(length as u64)),
        }
    });
    match written {
        Ok(length) => {
            if let Some(header) = out.get_mut(start..start + HEADER_BYTES) {
                header.copy_from_slice(&length.to_le_bytes());
            }
            Ok(())
        }
        Err(error) => {
            // Half a frame would make the peer read everything after it wrongly.
            out.truncate(start);
            Err(error)
        }
    }
}

pub(super) fn hello(hello: &Hello, out: &mut Vec<u8>) -> Result<(), FrameError> {
    out.push(0);
    out.extend_from_slice(&HELLO_MAGIC.to_le_bytes());
    out.extend_from_slice(&PROTOCOL_VERSION.to_le_bytes());
    text(&hello.guest_key, out)?;
    walls(&hello.walls, out)
}

fn walls(walls: &Walls, out: &mut Vec<u8>) -> Result<(), FrameError> {
    out.push(walls.landlock_abi);
    count(walls.layers.len(), out)?;
    for (layer, standing) in &walls.layers {
        out.push(layer.number());
        match standing {
            LayerStatus::Up => out.push(1),
            LayerStatus::Missing(reason) => {
                out.push(0);
                text(reason, out)?;
            }
        }
    }
    Ok(())
}

pub(super) fn down(down: &Down, out: &mut Vec<u8>) -> Result<(), FrameError> {
    match down {
        Down::Start(call, start) => {
            out.push(1);
            out.extend_from_slice(&call.0.to_le_bytes());
            job(start, out)
        }
        Down::Answer(call, host_call, given) => {
            out.push(2);
            out.extend_from_slice(&call.0.to_le_bytes());
            out.extend_from_slice(&host_call.0.to_le_bytes());
            answer(given, out)
        }
        Down::Cancel(call) => {
            out.push(3);
            out.extend_from_slice(&call.0.to_le_bytes());
            Ok(())
        }
    }
}

fn job(job: &Job, out: &mut Vec<u8>) -> Result<(), FrameError> {
    text(&job.body, out)?;
    text(&job.globals, out)?;
    texts(&job.declared, out)?;
    texts(&job.powers, out)?;
    limits(&job.limits, out);
    out.extend_from_slice(&job.seed.to_le_bytes());
    out.extend_from_slice(&job.now_ms.to_le_bytes());
    Ok(())
}

fn limits(limits: &JobLimits, out: &mut Vec<u8>) {
    // Taken apart by name, so that a new limit does not compile until it is sent.
    let JobLimits {
        work_max,
        cpu_ms_max,
        wall_ms_max,
        memory_bytes_max,
        result_bytes_max,
        result_depth_max,
        console_lines_max,
        console_bytes_max,
        host_calls_max,
        host_outstanding_max,
        payload_bytes_max,
    } = limits;
    out.extend_from_slice(&work_max.to_le_bytes());
    for bound in [
        cpu_ms_max,
        wall_ms_max,
        memory_bytes_max,
        result_bytes_max,
        result_depth_max,
        console_lines_max,
        console_bytes_max,
        host_calls_max,
        host_outstanding_max,
        payload_bytes_max,
    ] {
        out.extend_from_slice(&bound.to_le_bytes());
    }
}

fn answer(answer: &HostAnswer, out: &mut Vec<u8>) -> Result<(), FrameError> {
    match answer {
        HostAnswer::Value(value) => {
            out.push(1);
            payload(value, out)
        }
        HostAnswer::Error(error) => {
            out.push(2);
            text(error, out)
        }
    }
}

fn payload(payload: &Payload, out: &mut Vec<u8>) -> Result<(), FrameError> {
    text(&payload.json, out)?;
    bytes(&payload.bytes, out)
}

pub(super) fn up(up: &Up, out: &mut Vec<u8>) -> Result<(), FrameError> {
    match up {
        Up::Console(call, line) => {
            out.push(1);
            out.extend_from_slice(&call.0.to_le_bytes());
            console(line, out)
        }
        Up::Host(call, asked) => {
            out.push(2);
            out.extend_from_slice(&call.0.to_le_bytes());
            request(asked, out)
        }
        Up::Ended(call, last) => {
            out.push(3);
            out.extend_from_slice(&call.0.to_le_bytes());
            report(last, out)
        }
    }
}

fn console(line: &GuestLine, out: &mut Vec<u8>) -> Result<(), FrameError> {
    out.push(match line.level {
        ConsoleLevel::Log => 1,
        ConsoleLevel::Info => 2,
        ConsoleLevel::Warn => 3,
        ConsoleLevel::Error => 4,
        ConsoleLevel::Debug => 5,
    });
    text(&line.text, out)
}

fn request(request: &HostRequest, out: &mut Vec<u8>) -> Result<(), FrameError> {
    out.extend_from_slice(&request.id.0.to_le_bytes());
    out.push(match request.kind {
        HostCallKind::Queued => 1,
        HostCallKind::Direct => 2,
    });
    text(&request.operation, out)?;
    payload(&request.payload, out)
}

fn report(report: &RunReport, out: &mut Vec<u8>) -> Result<(), FrameError> {
    usage(report.usage, out);
    text(&report.notes, out)?;
    out.extend_from_slice(&report.rejections.count.to_le_bytes());
    count(report.rejections.told.len(), out)?;
    for rejection in &report.rejections.told {
        thrown(rejection, out)?;
    }
    stop_place(report.stopped_at, out);
    match &report.ended {
        Ended::Value(json) => {
            out.push(1);
            text(json, out)
        }
        Ended::Undefined => {
            out.push(2);
            Ok(())
        }
        Ended::Threw(error) => {
            out.push(3);
            thrown(error, out)
        }
        Ended::Breached(bound) => {
            out.push(4);
            out.push(breach_number(*bound));
            Ok(())
        }
        Ended::Cancelled => {
            out.push(5);
            Ok(())
        }
        Ended::Broken(detail) => {
            out.push(6);
            text(detail, out)
        }
    }
}

fn usage(usage: RunUsage, out: &mut Vec<u8>) {
    // By name, as in `limits`: a new figure does not compile until it is sent.
    let RunUsage {
        work,
        cpu_us,
        wall_us,
        memory_bytes,
        host_calls,
    } = usage;
    for amount in [work, cpu_us, wall_us, memory_bytes] {
        out.extend_from_slice(&amount.to_le_bytes());
    }
    out.extend_from_slice(&host_calls.to_le_bytes());
}

fn stop_place(place: Option<StopPlace>, out: &mut Vec<u8>) {
    match place {
        None => out.push(0),
        Some(place) => {
            out.push(if place.in_regex { 2 } else { 1 });
            out.extend_from_slice(&place.line.to_le_bytes());
            out.extend_from_slice(&place.column.to_le_bytes());
        }
    }
}

fn thrown(thrown: &Thrown, out: &mut Vec<u8>) -> Result<(), FrameError> {
    text(&thrown.name, out)?;
    text(&thrown.message, out)?;
    out.extend_from_slice(&thrown.line.to_le_bytes());
    out.extend_from_slice(&thrown.column.to_le_bytes());
    match &thrown.helper {
        None => {
            out.push(0);
            Ok(())
        }
        Some(helper) => {
            out.push(1);
            text(helper, out)
        }
    }
}

fn breach_number(breach: Breach) -> u8 {
    match breach {
        Breach::Work => 1,
        Breach::Cpu => 2,
        Breach::Wall => 3,
        Breach::Memory => 4,
        Breach::Stack => 5,
        Breach::ResultBytes => 6,
        Breach::ResultDepth => 7,
        Breach::ConsoleLines => 8,
        Breach::ConsoleBytes => 9,
        Breach::HostCalls => 10,
        Breach::HostOutstanding => 11,
        Breach::PayloadBytes => 12,
        Breach::Deadlock => 13,
    }
}

fn texts(texts: &[String], out: &mut Vec<u8>) -> Result<(), FrameError> {
    count(texts.len(), out)?;
    texts.iter().try_for_each(|one| text(one, out))
}

fn text(text: &str, out: &mut Vec<u8>) -> Result<(), FrameError> {
    bytes(text.as_bytes(), out)
}

fn bytes(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), FrameError> {
    count(bytes.len(), out)?;
    out.extend_from_slice(bytes);
    Ok(())
}

fn count(count: usize, out: &mut Vec<u8>) -> Result<(), FrameError> {
    match u32::try_from(count) {
        // Refused here, before the copy: the frame would be refused later anyway.
        Ok(count) if count <= FRAME_BYTES_MAX => {
            out.extend_from_slice(&count.to_le_bytes());
            Ok(())
        }
        Ok(_) | Err(_) => Err(FrameError::TooLong(count as u64)),
    }
}
