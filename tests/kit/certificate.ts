/**
 * A certificate that nobody trusts but who is told to, for servers of tests that speak TLS.
 *
 * @module
 */

/** Its own authority; it is for `good.invalid`, `localhost` and 127.0.0.1. */
export const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBczCCARmgAwIBAgIBATAKBggqhkjOPQQDAjATMREwDwYDVQQDDAhwbWwgdGVz
dDAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowEzERMA8GA1UEAwwI
cG1sIHRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQ6RVoBQAU8I2weRE/F
en9RUv8pctTXs+M+SFAcycc317kA3leBZruJ5QDNOZgnd4OMX2mi46UQZLsfHQiF
LGNMo1wwWjAoBgNVHREEITAfggxnb29kLmludmFsaWSCCWxvY2FsaG9zdIcEfwAA
ATAPBgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBTVn1AWE23IPO0Bzd9fKtQWYAxq
RTAKBggqhkjOPQQDAgNIADBFAiEAxBj3NvYQ4yfT4QUovF3TsgCvhEvjvvhqQ+wG
fEnMz1UCIEuXpjtmhhrW4I69/3Bk4sAN7Ddz4K+QtCV33Lu+r6Mz
-----END CERTIFICATE-----
`;

/** What belongs to it, and protects nothing. */
export const CERTIFICATE_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQggLbhSNhwE77MbAwv
+z219qmEzSzDedRP5d9te/noK32hRANCAAQ6RVoBQAU8I2weRE/Fen9RUv8pctTX
s+M+SFAcycc317kA3leBZruJ5QDNOZgnd4OMX2mi46UQZLsfHQiFLGNM
-----END PRIVATE KEY-----
`;
