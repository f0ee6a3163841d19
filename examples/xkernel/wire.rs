//! Headers in wire format: IPv4 (RFC 791), UDP (RFC 768), TCP (RFC 9293), without options.

pub(crate) const UDP: u8 = 17;
pub(crate) const TCP: u8 = 6;
/// Flags of a TCP segment.
pub(crate) const ACK: u8 = 0x10;
pub(crate) const PSH: u8 = 0x08;

const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const TCP_HEADER: usize = 20;
const CHECKSUM: &str = "checksum";

/// An IPv4 packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) protocol: u8,
    pub(crate) payload: &'a [u8],
}

/// A UDP datagram.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Datagram<'a> {
    pub(crate) source: u16,
    pub(crate) destination: u16,
    pub(crate) payload: &'a [u8],
}

/// A TCP segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Segment<'a> {
    pub(crate) source: u16,
    pub(crate) destination: u16,
    pub(crate) sequence: u32,
    pub(crate) acknowledged: u32,
    pub(crate) flags: u8,
    pub(crate) payload: &'a [u8],
}

impl<'a> Packet<'a> {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let length = (IP_HEADER + self.payload.len()) as u16;
        let mut bytes = vec![0x45, 0];
        bytes.extend(length.to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, 64, self.protocol, 0, 0]);
        bytes.extend(self.source.to_be_bytes());
        bytes.extend(self.destination.to_be_bytes());
        let sum = checksum(&[&bytes]);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes.extend(self.payload);
        bytes
    }

    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let header = bytes.get(..IP_HEADER).ok_or("length")?;
        if header[0] != 0x45 || usize::from(word(header, 2)) != bytes.len() {
            return Err("length");
        }
        if checksum(&[header]) != 0 {
            return Err(CHECKSUM);
        }
        let address = |at| u32::from(word(header, at)) << 16 | u32::from(word(header, at + 2));
        let payload = &bytes[IP_HEADER..];
        Ok(Self { source: address(12), destination: address(16), protocol: header[9], payload })
    }

    /// The pseudo-header, which UDP and TCP include in their checksums.
    fn pseudo_header(&self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(12);
        bytes.extend(self.source.to_be_bytes());
        bytes.extend(self.destination.to_be_bytes());
        bytes.extend([0, self.protocol]);
        bytes.extend((length as u16).to_be_bytes());
        bytes
    }
}

impl<'a> Datagram<'a> {
    /// The bytes, for a packet between these addresses.
    pub(crate) fn to_bytes(&self, source: u32, destination: u32) -> Vec<u8> {
        let length = UDP_HEADER + self.payload.len();
        let mut bytes = Vec::with_capacity(length);
        for field in [self.source, self.destination, length as u16, 0] {
            bytes.extend(field.to_be_bytes());
        }
        bytes.extend(self.payload);
        let around = Packet { source, destination, protocol: UDP, payload: &[] };
        let sum = checksum(&[&around.pseudo_header(length), &bytes]);
        // 0 would mean that there is no checksum.
        let sum = if sum == 0 { 0xFFFF } else { sum };
        bytes[6..8].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    pub(crate) fn parse(packet: &Packet<'a>) -> Result<Self, &'static str> {
        let bytes = packet.payload;
        if bytes.len() < UDP_HEADER || usize::from(word(bytes, 4)) != bytes.len() {
            return Err("length");
        }
        if checksum(&[&packet.pseudo_header(bytes.len()), bytes]) != 0 {
            return Err(CHECKSUM);
        }
        Ok(Self { source: word(bytes, 0), destination: word(bytes, 2), payload: &bytes[UDP_HEADER..] })
    }
}

impl<'a> Segment<'a> {
    /// The bytes, for a packet between these addresses.
    pub(crate) fn to_bytes(&self, source: u32, destination: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(TCP_HEADER + self.payload.len());
        bytes.extend(self.source.to_be_bytes());
        bytes.extend(self.destination.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.acknowledged.to_be_bytes());
        bytes.extend([0x50, self.flags, 0xFF, 0xFF, 0, 0, 0, 0]);
        bytes.extend(self.payload);
        let around = Packet { source, destination, protocol: TCP, payload: &[] };
        let sum = checksum(&[&around.pseudo_header(bytes.len()), &bytes]);
        bytes[16..18].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    pub(crate) fn parse(packet: &Packet<'a>) -> Result<Self, &'static str> {
        let bytes = packet.payload;
        if bytes.len() < TCP_HEADER || bytes[12] >> 4 != 5 {
            return Err("length");
        }
        if checksum(&[&packet.pseudo_header(bytes.len()), bytes]) != 0 {
            return Err(CHECKSUM);
        }
        let long = |at| u32::from(word(bytes, at)) << 16 | u32::from(word(bytes, at + 2));
        let payload = &bytes[TCP_HEADER..];
        let (source, destination) = (word(bytes, 0), word(bytes, 2));
        Ok(Self { source, destination, sequence: long(4), acknowledged: long(8), flags: bytes[13], payload })
    }
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The internet checksum (RFC 1071) of several parts. All parts except the last must have even lengths.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u32 = words.map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low))).sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}
