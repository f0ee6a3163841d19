//! Builds the metadata from the blocks of the text: assigns events to their streams, and resolves paths to integers.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::block::{self, Blocks, EventBlock, StreamBlock};
use super::checksum;
use super::implied_clock;
use super::resolve::{Resolver, Roots};
use super::tokens::{self, ParseError, Token, shorten};
use super::types::{ByteOrder, Type};
use super::{Body, Clock, EventClass, Metadata, StreamClass};
use winnow::Parser;
use winnow::combinator::preceded;
use winnow::error::{ErrMode, ParserError};

/// Maximum number of types searched for the clock of a stream.
const CLOCK_SEARCH: u32 = 4096;

/// Events by id, by stream.
type Events = BTreeMap<u64, BTreeMap<u64, Arc<EventClass>>>;

/// Parses the text and builds the metadata from it.
pub(super) fn build(text: &str) -> Result<Metadata, ParseError> {
    let native = native_order(text);
    let mut input = tokens::input(text, native);
    let mut blocks = block::blocks(&mut input).map_err(|error| match error {
        ErrMode::Cut(error) | ErrMode::Backtrack(error) => error,
        ErrMode::Incomplete(_) => ParseError::from_input(&input),
    })?;
    if blocks.is_empty() {
        let reason = "it declares nothing: the tracer was killed before it wrote it, or has not written it yet";
        return Err(ParseError { offset: 0, reason: reason.to_owned() });
    }
    let declared = std::mem::take(&mut blocks.clocks);
    let mut clocks =
        order_clocks(&input.state.clocks, declared).map_err(|reason| ParseError { offset: text.len(), reason })?;
    implied_clock::map(&mut blocks.streams, &mut clocks);
    let mut resolver = Resolver::default();
    resolve_streams(&mut resolver, &mut blocks)?;
    let mut events = place_events(&mut resolver, &mut blocks)?;

    let streams = blocks.streams.into_iter().map(|stream| {
        let clock = [&stream.event_header, &stream.packet_context]
            .into_iter()
            .flatten()
            .find_map(|ty| first_clock(&Type::Struct(Arc::clone(ty)), &mut { CLOCK_SEARCH }));
        let class = StreamClass {
            id: stream.id,
            packet_context: stream.packet_context,
            event_header: stream.event_header,
            event_context: stream.event_context,
            events: events.remove(&stream.id).unwrap_or_default(),
            clock,
            derived: OnceLock::new(),
        };
        (class.id, Arc::new(class))
    });
    let body = Body {
        uuid: blocks.uuid,
        order: native,
        packet_header: blocks.packet_header,
        env: blocks.env,
        streams: streams.collect(),
        clocks,
        shared_slots: resolver.shared as usize,
        event_slots: resolver.most_event as usize,
        checked: checksum::check(text.as_bytes()),
    };
    Ok(Metadata { body: Arc::new(body) })
}

/// Resolves the paths in packet headers, packet contexts and event headers.
fn resolve_streams(resolver: &mut Resolver, blocks: &mut Blocks) -> Result<(), ParseError> {
    if blocks.streams.is_empty() {
        blocks.streams.push(StreamBlock::default());
    }
    let mut resolve = |offset, mut roots: Roots<'_>, which| {
        resolver.resolve(&mut roots, which).map_err(|error| ParseError { offset, reason: error.to_string() })
    };
    let header = &mut blocks.packet_header;
    resolve(0, [header, &mut None, &mut None, &mut None, &mut None, &mut None], 0)?;
    for stream in &mut blocks.streams {
        for which in 1..4 {
            let roots = [
                &mut *header,
                &mut stream.packet_context,
                &mut stream.event_header,
                &mut stream.event_context,
                &mut None,
                &mut None,
            ];
            resolve(stream.offset, roots, which)?;
        }
    }
    Ok(())
}

/// Resolves the paths in the events, and groups the events by stream: an event may come before its stream in the text.
fn place_events(resolver: &mut Resolver, blocks: &mut Blocks) -> Result<Events, ParseError> {
    let mut index = BTreeMap::new();
    for (position, stream) in blocks.streams.iter().enumerate() {
        if index.insert(stream.id, position).is_some() {
            let reason = format!("stream {} is declared twice", stream.id);
            return Err(ParseError { offset: stream.offset, reason });
        }
    }
    let only = if index.len() == 1 { index.keys().next().copied() } else { None };
    let mut events = Events::new();
    for EventBlock { offset, stream, mut class } in std::mem::take(&mut blocks.events) {
        let error = |reason: String| ParseError { offset, reason };
        let id = stream.or(only).ok_or_else(|| error("an event needs a `stream_id`".to_owned()))?;
        let position = *index.get(&id).ok_or_else(|| error(format!("there is no stream {id} for this event")))?;
        let stream = &mut blocks.streams[position];
        resolver.event = 0;
        for which in 4..6 {
            let mut roots = [
                &mut blocks.packet_header,
                &mut stream.packet_context,
                &mut stream.event_header,
                &mut stream.event_context,
                &mut class.context,
                &mut class.fields,
            ];
            resolver.resolve(&mut roots, which).map_err(|unresolved| error(unresolved.to_string()))?;
        }
        class.stream_id = id;
        let event_id = class.id;
        if events.entry(id).or_default().insert(event_id, Arc::new(class)).is_some() {
            return Err(error(format!("event {event_id} of stream {id} is declared twice")));
        }
    }
    Ok(events)
}

/// Sorts the clocks by the indices used in integers.
fn order_clocks(mentioned: &[String], mut declared: Vec<Clock>) -> Result<Vec<Clock>, String> {
    let mut clocks = Vec::new();
    for name in mentioned {
        let Some(index) = declared.iter().position(|clock| clock.name == *name) else {
            return Err(format!("no clock is called `{}`", shorten(name)));
        };
        clocks.push(declared.remove(index));
    }
    clocks.append(&mut declared);
    Ok(clocks)
}

/// The first clock that an integer in `ty` is mapped to; visits at most `left` types.
fn first_clock(ty: &Type, left: &mut u32) -> Option<usize> {
    *left = left.checked_sub(1)?;
    match ty {
        Type::Integer(integer) | Type::Enum(integer, _) => integer.clock.map(usize::from),
        Type::Struct(ty) => ty.fields.iter().find_map(|f| first_clock(&f.ty, left)),
        Type::Array(ty) => first_clock(&ty.element, left),
        Type::Variant(ty) => ty.options.iter().find_map(|f| first_clock(&f.ty, left)),
        Type::Float(_) | Type::String => None,
    }
}

/// The byte order of the trace, needed by types declared before the `trace` block.
fn native_order(text: &str) -> ByteOrder {
    let mut input = tokens::input(text, ByteOrder::Little);
    let mut depth = 0u64;
    let mut in_trace = false;
    let mut last = ["", "", ""];
    let mut next = preceded(tokens::blank, tokens::token);
    while let Ok(token) = next.parse_next(&mut input) {
        let word = match token {
            Token::Word(word) | Token::Mark(word) => word,
            Token::End => break,
            _ => "",
        };
        match word {
            "{" => {
                in_trace |= depth == 0 && last[2] == "trace";
                depth += 1;
            }
            "}" => {
                depth = depth.saturating_sub(1);
                if in_trace && depth == 0 {
                    break;
                }
            }
            "be" | "network" if in_trace && depth == 1 && last[1..] == ["byte_order", "="] => {
                return ByteOrder::Big;
            }
            _ => {}
        }
        last = [last[1], last[2], word];
    }
    ByteOrder::Little
}
