//! Which addresses belong to the public internet, and a resolver that gives out no others.
//!
//! What a name resolves to is looked at here and connected to as it is: a name that answers
//! differently the second time gains nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Gives out only public addresses.
#[derive(Debug, Clone, Copy)]
pub(super) struct PublicNames;

/// A name that leads to this machine or its neighbours.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not on the public internet")]
pub(super) struct NotPublic(pub(super) String);

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // one inner address among public ones is a trap, not a mistake
            if found.iter().any(|address| !is_public(address.ip())) {
                return Err(NotPublic(name).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Whether the host of a URL is a name, or a public address; names are looked at by [`PublicNames`]. The URL has
/// been read the way a browser reads it, so that `127.1` and `0x7f000001` stand here as what they are.
pub(super) fn check_host(url: &reqwest::Url) -> Result<(), NotPublic> {
    let host = url.host_str().unwrap_or_default();
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(address) if !is_public(address) => Err(NotPublic(host.to_owned())),
        _ => Ok(()),
    }
}

/// Whether an address is one that everybody on the internet can reach (the registries of RFC 6890).
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        // carrier-grade address translation
        || (a == 100 && (64..128).contains(&b))
        // protocol assignments, and 6to4 relays
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        // benchmarking
        || (a == 198 && (b == 18 || b == 19));
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // an IPv4 address in other clothes
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            embedded(high, low)
        }
        // Teredo, ORCHID and the rest of the protocol assignments; documentation
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        // what is given out at all
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inside_is_not_public_in_whatever_clothes() {
        for inside in [
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "192.0.0.8",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "2002:7f00:1::",
            "2001:0:1:2::",
            "2001:db8::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "::127.0.0.1",
            "100::1",
        ] {
            assert!(!is_public(inside.parse().unwrap()), "{inside}");
        }
        for outside in ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert!(is_public(outside.parse().unwrap()), "{outside}");
        }
    }

    #[test]
    fn an_address_in_a_url_is_looked_at() {
        let check = |url: &str| check_host(&url.parse().unwrap()).is_ok();
        for inside in ["127.0.0.1:8080", "[::1]", "10.0.0.1", "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1"] {
            assert!(!check(&format!("http://{inside}/")), "{inside}");
        }
        assert!(check("https://example.org/") && check("http://8.8.8.8/"));
    }
}
