import { AddressList } from './address-list.ts'

/**
 * The addresses that are refused even if the operator allows them: addresses of no host, addresses that
 * reach only the local link, and the services from which clouds serve the credentials of the machine.
 */
export const ALWAYS_REFUSED = new AddressList('always refused', [
  // Unspecified: a connection to it reaches this machine.
  '0.0.0.0/8',
  '::',
  // Link-local; 169.254.169.254 and its neighbors are the metadata services of most clouds.
  '169.254.0.0/16',
  'fe80::/10',
  // Multicast and broadcast.
  '224.0.0.0/4',
  '255.255.255.255',
  'ff00::/8',
  // Metadata and credentials: AWS over IPv6, Google over IPv6, Alibaba, Oracle, Azure's host.
  'fd00:ec2::254',
  'fd00:ec2::23',
  'fd20:ce::254',
  '100.100.100.200',
  '192.0.0.192',
  '168.63.129.16',
  'metadata.google.internal',
  'metadata.goog',
])
