//! A decoder of dt files written from the tables of `docs/format-dt.md` alone: it shares no code with the crate.

/// The contents of a dt file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) header: [i32; 5],
    /// Slots with entries, oldest first: number, entries' bytes.
    pub(crate) slots: Vec<(usize, Vec<u8>)>,
    /// Slots that should be intact and are not.
    pub(crate) torn: Vec<usize>,
    pub(crate) postambles: Vec<u8>,
}

pub(crate) fn decode(file: &[u8]) -> Decoded {
    let word = |at: usize| i32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let header = [word(0), word(4), word(8), word(12), word(16)];
    let [version, size, number, last, last_size] = header;
    let (size, number) = (usize::try_from(size).unwrap(), usize::try_from(number).unwrap());
    let location = 20 + number * size;
    let mut decoded = Decoded {
        header,
        slots: Vec::new(),
        torn: Vec::new(),
        postambles: file.get(location..).unwrap_or_default().to_vec(),
    };
    for age in 0..number {
        let slot = (usize::try_from(last + 1).unwrap() + age) % number;
        let is_last = i32::try_from(slot).unwrap() == last;
        if is_last && last_size == 0 {
            continue;
        }
        let start = 20 + slot * size;
        let bytes = &file[start.min(file.len())..(start + size).min(file.len())];
        let used = if is_last { usize::try_from(last_size).unwrap() } else { size };
        let entries = match version {
            1 => bytes.get(..used),
            2 => framed(bytes, is_last.then(|| used - 8)),
            other => panic!("version {other}"),
        };
        match entries {
            Some([]) => {}
            Some(entries) => decoded.slots.push((slot, entries.to_vec())),
            None => decoded.torn.push(slot),
        }
    }
    decoded
}

/// The entries of a framed slot; `None` if it was never written.
fn framed(slot: &[u8], stated: Option<usize>) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(slot.get(at..at + 4)?.try_into().unwrap()));
    let (length, checksum) = (word(0)? as usize, word(4)?);
    if stated.is_none() && length == 0 && checksum == 0 {
        return Some(&[]);
    }
    let mut lengths = stated.into_iter().chain([length]);
    lengths.find_map(|length| slot.get(8..8 + length).filter(|entries| crc32(entries) == checksum))
}

/// CRC-32 of IEEE 802.3, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 })
    })
}
