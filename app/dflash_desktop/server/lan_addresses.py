"""Under which addresses other devices reach this computer."""

from __future__ import annotations

import ipaddress
import socket

import psutil


def lan_addresses() -> list[str]:
    """IPv4 addresses of this machine that are not its own loopback, private networks first."""
    found = []
    for addresses in psutil.net_if_addrs().values():
        for address in addresses:
            if address.family != socket.AF_INET:
                continue
            try:
                parsed = ipaddress.ip_address(address.address)
            except ValueError:
                continue
            if not (parsed.is_loopback or parsed.is_link_local):
                found.append(parsed)
    return [str(each) for each in sorted(found, key=lambda each: (not each.is_private, int(each)))]
