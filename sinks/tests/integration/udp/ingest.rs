//! Ingested messages.

use crate::udp::Outcome;
use crate::udp::batch_client::BatchClient;
use crate::udp::legacy_client::{LegacyClient, Message, SESSION_BEGIN, TRACE_BEGIN, number};
use crate::udp::served::{OFFSET, Served, options};
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use tracepoint_sinks::udp::{MAX_MESSAGE, UdpServer};
use tracepoint_wire::udp::Accept;

#[test]
fn each_datagram_is_an_event_byte_for_byte() -> Outcome {
    let place = tempfile::tempdir()?;
    let path = place.path().join("events");
    let mut served = Served::start(options().events_from(&path));
    let mut client = LegacyClient::new(served.address());
    client.start();
    assert_eq!([client.message(), client.message()], [SESSION_BEGIN, TRACE_BEGIN]);
    let outside = UnixDatagram::unbound()?;
    for message in [&b"hello"[..], b"", b"\0\xff\n"] {
        outside.send_to(message, &path)?;
        let time = OFFSET as u64 + 1;
        assert_eq!(client.message(), Message::Packet { time, content: message.to_vec() });
    }
    served.numbers(0, [1]);
    assert_eq!(client.event(), number(1));
    served.end();
    assert!(!path.exists(), "the socket is removed");
    Ok(())
}

#[test]
fn each_line_of_a_fifo_is_an_event() -> Outcome {
    let place = tempfile::tempdir()?;
    let path = place.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status()?.success());
    let served = Served::start(options().events_from(&path));
    let mut client = LegacyClient::new(served.address());
    client.start();
    assert_eq!([client.message(), client.message()], [SESSION_BEGIN, TRACE_BEGIN]);
    // Another writer opens and closes it.
    for (written, events) in [("one\ntwo\nth", &["one", "two"][..]), ("ree\n", &["three"]), ("\n", &[""])] {
        fs::OpenOptions::new().write(true).open(&path)?.write_all(written.as_bytes())?;
        for event in events {
            assert_eq!(client.event(), *event);
        }
    }
    Ok(())
}

#[test]
fn each_line_of_a_file_is_an_event_that_waits_for_a_client() -> Outcome {
    let place = tempfile::tempdir()?;
    let path = place.path().join("file");
    let lines: Vec<Vec<u8>> = (0..5000_u32).map(|n| [&n.to_be_bytes()[..], &[0xff, 0, b'x']].concat()).collect();
    let lines: Vec<_> = lines.into_iter().filter(|line| !line.contains(&b'\n')).collect();
    // The last line has no end.
    fs::write(&path, lines.join(&b'\n'))?;
    // The limit is far below their number.
    let served = Served::start(options().events_from(&path).limit(10_000).linger(std::time::Duration::MAX));
    let mut client = BatchClient::new(served.address());
    client.begin(Accept::new(0));
    client.until(|kept| kept.events == lines.len() as u64);
    served.until(|stats| stats.lost == 0 && stats.waiting == 0);
    assert!(served.server.has_read_events());
    served.server.end(None);
    let end = client.rest();
    assert!(end.trace && end.lost.total() == 0, "{end:?}");
    Ok(())
}

#[test]
fn messages_are_sent_in_batches_as_a_channel() -> Outcome {
    let place = tempfile::tempdir()?;
    let path = place.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status()?.success());
    let mut served = Served::start(options().events_from(&path));
    let mut fifo = fs::OpenOptions::new().write(true).open(&path)?;
    fifo.write_all(b"first\n")?;
    fifo.write_all(&vec![b'x'; MAX_MESSAGE + 1])?;
    fifo.write_all(b"\nlast\n")?;
    served.numbers(0, [1]);
    served.until(|stats| stats.lost == 1);
    assert_eq!(served.server.messages(), (2, 1));
    let mut client = BatchClient::new(served.address());
    client.begin(Accept::new(0));
    client.until(|kept| kept.events == 3);
    served.server.end(None);
    let end = client.rest();
    assert_eq!((end.events, end.lost.too_large, end.lost.total()), (3, 1, 1));
    client.kept.write(place.path());
    fs::remove_file(&path)?;
    let trace = tracepoint_reader::Trace::open(place.path())?;
    let mut messages = Vec::new();
    for item in trace.items() {
        match item {
            tracepoint_reader::Item::Event(event) if event.name() == "outside:message" => {
                let fields = event.fields.ok_or("fields")?;
                let data = fields.get("data").and_then(|data| data.as_bytes()).ok_or("bytes")?;
                messages.push(String::from_utf8_lossy(data).into_owned());
            }
            tracepoint_reader::Item::Damage(damage) => panic!("{damage}"),
            _ => {}
        }
    }
    assert_eq!(messages, ["first", "last"]);
    Ok(())
}

#[test]
fn endless_input_does_not_starve_the_server() -> Outcome {
    let place = tempfile::tempdir()?;
    let path = place.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status()?.success());
    let mut served = Served::start(options().events_from(&path));
    let mut endless = fs::OpenOptions::new().write(true).open(&path)?;
    let writer = std::thread::spawn(move || while endless.write_all(&[0; 4096]).is_ok() {});
    let mut client = LegacyClient::new(served.address());
    client.start();
    assert_eq!([client.message(), client.message()], [SESSION_BEGIN, TRACE_BEGIN]);
    served.numbers(0, [1]);
    assert_eq!(client.event(), number(1));
    served.end();
    drop(served);
    // No writer has it open any more.
    writer.join().map_err(|_| "the writer failed")?;
    Ok(())
}

#[test]
fn a_file_that_has_replaced_the_socket_is_not_removed() -> Outcome {
    let place = tempfile::tempdir()?;
    let path = place.path().join("events");
    let mut served = Served::start(options().events_from(&path));
    fs::remove_file(&path)?;
    let other = UnixDatagram::bind(&path)?;
    served.end();
    UnixDatagram::unbound()?.send_to(b"hello", &path)?;
    assert_eq!(other.recv(&mut [0; 16])?, 5);
    Ok(())
}

#[test]
fn paths_without_messages_are_refused() -> Outcome {
    let place = tempfile::tempdir()?;
    let directory = place.path().join("directory");
    fs::create_dir(&directory)?;
    let socket = place.path().join("socket");
    let _held = UnixDatagram::bind(&socket)?;
    for (path, reason) in [(directory, "it is neither a file nor a FIFO"), (socket, "a socket exists already")] {
        let mut server = UdpServer::bind(options().events_from(&path))?;
        server.describe(&crate::udp::served::metadata())?;
        let error = server.start(Box::new(|| 0)).expect_err("refused");
        assert!(error.to_string().contains(reason), "{error}");
        assert!(path.exists(), "and left alone");
    }
    Ok(())
}
