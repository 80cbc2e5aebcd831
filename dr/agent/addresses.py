"""Host name -> the addresses that may be connected to. Private ones are refused after resolution. Network: DNS only."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from typing import Any

from dr.agent.unreadable import Unreadable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# (host, port) -> socket addresses to try in order: (family, address as `socket.connect` takes it)
Resolve = Callable[[str, int], "list[tuple[int, Any]]"]

# IPv6 prefixes that carry an IPv4 address, which is the one that is reached in the end.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")

# Networks of special use that `ipaddress` takes for global in some versions of Python.
_SPECIAL = tuple(
    map(ipaddress.ip_network, "192.0.0.0/24 192.88.99.0/24 64:ff9b:1::/48 2001:20::/28 3fff::/20 5f00::/16".split())
)


def resolver(allow_private: bool) -> Resolve:
    """Resolution under one rule. Whatever form the host is written in (decimal, hex, mapped), its address decides."""

    def resolve(host: str, port: int) -> list[tuple[int, Any]]:
        found = lookup(host, port)
        allowed = [pair for pair in found if allow_private or is_public(pair[1][0])]
        if not allowed:
            raise Unreadable("private", host, host=host, address=found[0][1][0])
        return allowed

    return resolve


def lookup(host: str, port: int) -> list[tuple[int, Any]]:
    """Every stream address of `host`. Unreadable: there is none."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # UnicodeError: a label that no host name can have
        reason = "dns_again" if getattr(error, "errno", None) == socket.EAI_AGAIN else "dns"
        raise Unreadable(reason, host, host=host) from error
    return [(family, address) for family, _, _, _, address in found]


def is_public(text: str) -> bool:
    """Whether an address is one of the open internet: not private, loopback, link-local, multicast or reserved."""
    try:
        address = ipaddress.ip_address(text.split("%")[0])
    except ValueError:
        return False
    embedded = _embedded(address)
    return _is_global(address) if embedded is None else _is_global(embedded)


def _is_global(address: Address) -> bool:
    shared = address.is_multicast or address.is_reserved or address.is_unspecified or address.is_link_local
    special = any(address in network for network in _SPECIAL)
    return address.is_global and not address.is_private and not shared and not special


def _embedded(address: Address) -> ipaddress.IPv4Address | None:
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if address.teredo:
        return address.teredo[1]
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 0xFFFF):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None
