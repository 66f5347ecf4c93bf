//! Frames there and back, and bytes that are none.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Just;

use crate::job::{
    Breach, CallId, ConsoleLevel, Down, Ended, GuestLine, HostAnswer, HostCallId, HostCallKind,
    HostRequest, Job, JobLimits, Payload, Rejections, RunReport, RunUsage, StopPlace, Thrown, Up,
};
use crate::walls::{Layer, LayerStatus, Walls};

use super::{
    FRAME_BYTES_MAX, FrameBuffer, FrameError, HEADER_BYTES, Hello, decode_down, decode_hello,
    decode_up, encode_down, encode_hello, encode_up, fuzz,
};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,40}",
        Just(String::new()),
        Just("\0\u{10ffff}".to_owned())
    ]
}

fn payload() -> impl Strategy<Value = Payload> {
    (text(), vec(any::<u8>(), 0..64)).prop_map(|(json, bytes)| Payload { json, bytes })
}

fn limits() -> impl Strategy<Value = JobLimits> {
    (any::<u64>(), any::<[u32; 10]>()).prop_map(|(work_max, b)| JobLimits {
        work_max,
        cpu_ms_max: b[0],
        wall_ms_max: b[1],
        memory_bytes_max: b[2],
        result_bytes_max: b[3],
        result_depth_max: b[4],
        console_lines_max: b[5],
        console_bytes_max: b[6],
        host_calls_max: b[7],
        host_outstanding_max: b[8],
        payload_bytes_max: b[9],
    })
}

fn job() -> impl Strategy<Value = Job> {
    let texts = || vec(text(), 0..4);
    (
        text(),
        text(),
        texts(),
        texts(),
        limits(),
        any::<u64>(),
        any::<i64>(),
    )
        .prop_map(
            |(body, globals, declared, powers, limits, seed, now_ms)| Job {
                body,
                globals,
                declared,
                powers,
                limits,
                seed,
                now_ms,
            },
        )
}

fn down() -> impl Strategy<Value = Down> {
    let answer = prop_oneof![
        payload().prop_map(HostAnswer::Value),
        text().prop_map(HostAnswer::Error),
    ];
    prop_oneof![
        (any::<u64>(), job()).prop_map(|(id, job)| Down::Start(CallId(id), Box::new(job))),
        (any::<u64>(), any::<u32>(), answer).prop_map(|(id, call, answer)| Down::Answer(
            CallId(id),
            HostCallId(call),
            answer
        )),
        any::<u64>().prop_map(|id| Down::Cancel(CallId(id))),
    ]
}

fn thrown() -> impl Strategy<Value = Thrown> {
    (
        text(),
        text(),
        any::<u32>(),
        any::<u32>(),
        option::of(text()),
    )
        .prop_map(|(name, message, line, column, helper)| Thrown {
            name,
            message,
            line,
            column,
            helper,
        })
}

fn ended() -> impl Strategy<Value = Ended> {
    let breach = prop_oneof![
        Just(Breach::Work),
        Just(Breach::Cpu),
        Just(Breach::Wall),
        Just(Breach::Memory),
        Just(Breach::Stack),
        Just(Breach::ResultBytes),
        Just(Breach::ResultDepth),
        Just(Breach::ConsoleLines),
        Just(Breach::ConsoleBytes),
        Just(Breach::HostCalls),
        Just(Breach::HostOutstanding),
        Just(Breach::PayloadBytes),
        Just(Breach::Deadlock),
    ];
    prop_oneof![
        text().prop_map(Ended::Value),
        Just(Ended::Undefined),
        thrown().prop_map(Ended::Threw),
        breach.prop_map(Ended::Breached),
        Just(Ended::Cancelled),
        text().prop_map(Ended::Broken),
    ]
}

fn up() -> impl Strategy<Value = Up> {
    let level = prop_oneof![
        Just(ConsoleLevel::Log),
        Just(ConsoleLevel::Info),
        Just(ConsoleLevel::Warn),
        Just(ConsoleLevel::Error),
        Just(ConsoleLevel::Debug),
    ];
    let line = (level, text()).prop_map(|(level, text)| GuestLine { level, text });
    let kind = prop_oneof![Just(HostCallKind::Queued), Just(HostCallKind::Direct)];
    let request =
        (any::<u32>(), kind, text(), payload()).prop_map(|(id, kind, operation, payload)| {
            HostRequest {
                id: HostCallId(id),
                kind,
                operation,
                payload,
            }
        });
    let numbers = (any::<[u64; 4]>(), any::<u32>());
    let place = (any::<u32>(), any::<u32>(), any::<bool>());
    let place = option::of(place.prop_map(|(line, column, in_regex)| StopPlace {
        line,
        column,
        in_regex,
    }));
    let rejections =
        (vec(thrown(), 0..3), any::<u32>()).prop_map(|(told, count)| Rejections { told, count });
    let beside = (text(), rejections, place);
    let report = (ended(), numbers, beside).prop_map(|(ended, (n, host_calls), beside)| {
        let usage = RunUsage {
            work: n[0],
            cpu_us: n[1],
            wall_us: n[2],
            memory_bytes: n[3],
            host_calls,
        };
        Box::new(RunReport {
            ended,
            usage,
            notes: beside.0,
            rejections: beside.1,
            stopped_at: beside.2,
        })
    });
    prop_oneof![
        (any::<u64>(), line).prop_map(|(id, line)| Up::Console(CallId(id), line)),
        (any::<u64>(), request).prop_map(|(id, request)| Up::Host(CallId(id), request)),
        (any::<u64>(), report).prop_map(|(id, report)| Up::Ended(CallId(id), report)),
    ]
}

fn hello() -> impl Strategy<Value = Hello> {
    let standing = prop_oneof![Just(LayerStatus::Up), text().prop_map(LayerStatus::Missing)];
    let layer = (0..Layer::ALL.len()).prop_map(|index| Layer::ALL[index]);
    let layers = proptest::collection::btree_map(layer, standing, 0..Layer::ALL.len());
    ("[a-z0-9]{0,40}", any::<u8>(), layers).prop_map(|(guest_key, landlock_abi, layers)| Hello {
        guest_key,
        walls: Walls {
            landlock_abi,
            layers,
        },
    })
}

fn body<T>(value: &T, encode: fn(&T, &mut Vec<u8>) -> Result<(), FrameError>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(value, &mut bytes).expect("it fits");
    bytes.split_off(HEADER_BYTES)
}

proptest! {
    #[test]
    fn parent_frames_round_trip(down in down()) {
        prop_assert_eq!(decode_down(&body(&down, encode_down)), Ok(down));
    }

    #[test]
    fn worker_frames_round_trip(up in up()) {
        prop_assert_eq!(decode_up(&body(&up, encode_up)), Ok(up));
    }

    #[test]
    fn a_hello_arrives(hello in hello()) {
        prop_assert_eq!(decode_hello(&body(&hello, encode_hello)), Ok(hello));
    }

    #[test]
    fn a_body_cut_short_or_made_longer_is_refused(up in up(), cut in any::<usize>()) {
        let whole = body(&up, encode_up);
        let short = &whole[..cut % whole.len()];
        prop_assert!(decode_up(short).is_err());
        let mut long = whole.clone();
        long.push(0);
        prop_assert!(decode_up(&long).is_err());
    }

    #[test]
    fn frames_arrive_whatever_the_pieces(ups in vec(up(), 0..6), piece in 1..50_usize) {
        let mut stream = Vec::new();
        for up in &ups {
            encode_up(up, &mut stream).expect("it fits");
        }
        let mut buffer = FrameBuffer::new(FRAME_BYTES_MAX);
        let mut arrived = Vec::new();
        for piece in stream.chunks(piece) {
            buffer.push(piece);
            while let Some(body) = buffer.next_body().expect("frames") {
                arrived.push(decode_up(body).expect("a frame"));
            }
        }
        prop_assert_eq!(arrived, ups);
        prop_assert_eq!(buffer.pending_bytes(), 0);
    }

    #[test]
    fn arbitrary_bytes_never_panic(data in vec(any::<u8>(), 0..400)) {
        fuzz(&data);
    }

    #[test]
    fn frames_with_changed_bytes_never_panic(
        up in up(), down in down(), hello in hello(),
        changes in vec((any::<usize>(), any::<u8>()), 1..6),
    ) {
        let mut data = vec![16];
        encode_hello(&hello, &mut data).expect("it fits");
        encode_up(&up, &mut data).expect("it fits");
        encode_down(&down, &mut data).expect("it fits");
        for (place, byte) in changes {
            let length = data.len();
            data[place % length] = byte;
        }
        fuzz(&data);
    }
}

/// The seeds of the fuzz target, run as an ordinary test.
#[test]
fn fuzz_seeds_pass() {
    let mut seeds: Vec<Vec<u8>> = vec![
        vec![],
        vec![0],
        vec![0, 0, 0, 0, 0],
        vec![3, 0xff, 0xff, 0xff, 0xff],
        vec![255, 5, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff],
        // A list that claims more texts than there are bytes.
        vec![
            9, 21, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 127,
        ],
    ];
    let mut frames = vec![7];
    encode_down(&Down::Cancel(CallId(5)), &mut frames).expect("it fits");
    encode_hello(
        &Hello {
            guest_key: "k".to_owned(),
            walls: Walls::default(),
        },
        &mut frames,
    )
    .expect("it fits");
    seeds.push(frames);
    for seed in seeds {
        fuzz(&seed);
    }
}

#[test]
fn a_claimed_length_reserves_nothing() {
    let mut buffer = FrameBuffer::new(FRAME_BYTES_MAX);
    buffer.push(&FRAME_BYTES_MAX.to_le_bytes());
    assert_eq!(buffer.next_body(), Ok(None));
    assert!(buffer.room().len() <= 64 << 10);
}

#[test]
fn a_frame_above_the_bound_is_refused_by_its_header() {
    let mut buffer = FrameBuffer::new(100);
    buffer.push(&101_u32.to_le_bytes());
    assert_eq!(buffer.next_body(), Err(FrameError::TooLong(101)));
    // The bound can be raised, but never above the protocol's own.
    buffer.allow(u32::MAX);
    assert_eq!(buffer.next_body(), Ok(None));
    let mut buffer = FrameBuffer::new(u32::MAX);
    buffer.push(&(FRAME_BYTES_MAX + 1).to_le_bytes());
    assert!(buffer.next_body().is_err());
}

#[test]
fn a_message_too_long_for_a_frame_leaves_nothing_behind() {
    let long = "x".repeat(FRAME_BYTES_MAX as usize + 1);
    let line = GuestLine {
        level: ConsoleLevel::Log,
        text: long,
    };
    let mut out = vec![1, 2, 3];
    assert!(encode_up(&Up::Console(CallId(1), line), &mut out).is_err());
    assert_eq!(out, [1, 2, 3]);
}

#[test]
fn another_version_is_refused_by_name() {
    let hello = Hello {
        guest_key: "k".to_owned(),
        walls: Walls::default(),
    };
    let mut bytes = body(&hello, encode_hello);
    bytes[5] = 9;
    assert_eq!(decode_hello(&bytes), Err(FrameError::Version(9)));
    bytes[1] = b'X';
    assert_eq!(decode_hello(&bytes), Err(FrameError::NotHello));
}
