/**
 * Hosts that are not public, in all spellings.
 *
 * @module
 */

/** The hosts of a URL. */
export const PRIVATE_HOSTS: readonly string[] = [
  ..."127.0.0.1 127.1 0x7f000001 2130706433 0177.0.0.1 0 [::ffff:7f00:1] [::1] [::]".split(" "),
  ..."[64:ff9b::7f00:1] [64:ff9b::a9fe:a9fe] 169.254.169.254 100.64.0.1 100.127.255.255".split(" "),
  ..."10.0.0.1 192.168.0.1 172.16.0.1 localhost localhost. LOCALHOST 127.0.0.1.".split(" "),
  ..."①②⑦.0.0.1 127。0。0。1 [fe80::1] [fd00::1] [2002:7f00:1::] [::ffff:127.0.0.1]".split(" "),
  ..."224.0.0.1 255.255.255.255".split(" "),
];
