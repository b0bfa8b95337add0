import { lookup as resolve, type LookupAddress } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { Fatal } from "../../../domain/errors.ts";

/**
 * Networks that are not the public internet. A URL out of a message must not lead the relay to its own machine or
 * neighbours.
 */
const PRIVATE = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10], // carrier-grade NAT
  ["127.0.0.0", 8],
  ["169.254.0.0", 16], // link-local, and the clouds' metadata services
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4], // multicast
  ["240.0.0.0", 4],
] as const) {
  PRIVATE.addSubnet(network, prefix, "ipv4");
}

/** The only range of IPv6 that is given out for the internet, less what leads back to IPv4 or to documentation. */
const PUBLIC_6 = new BlockList();
PUBLIC_6.addSubnet("2000::", 3, "ipv6");
const NOT_PUBLIC_6 = new BlockList();
for (const [network, prefix] of [
  ["2001::", 23], // Teredo and other protocols
  ["2001:db8::", 32],
  ["2002::", 16], // 6to4: an IPv4 address is inside
  ["3fff::", 20],
] as const) {
  NOT_PUBLIC_6.addSubnet(network, prefix, "ipv6");
}

export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !PRIVATE.check(address, "ipv4");
    case 6:
      // Mapped addresses (::ffff:…) and NAT64 (64:ff9b::) are outside of 2000::/3, and so refused.
      return PUBLIC_6.check(address, "ipv6") && !NOT_PUBLIC_6.check(address, "ipv6");
    default:
      return false;
  }
}

/**
 * Resolves a name once and refuses it unless all of its addresses are public. The connection goes to exactly these
 * addresses: there is no second look-up that could answer otherwise.
 */
export const publicLookup: LookupFunction = (hostname, options, callback) => {
  resolve(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
    if (error !== null) return callback(error, "", 0);
    const refused = addresses.find(({ address }) => !isPublicAddress(address));
    const [first] = addresses;
    if (refused !== undefined || first === undefined)
      return callback(new Fatal(`${hostname} leads to ${refused?.address ?? "nowhere"}, which is not public.`), "", 0);
    if (options.all === true) callback(null, addresses);
    else callback(null, first.address, first.family);
  });
};
