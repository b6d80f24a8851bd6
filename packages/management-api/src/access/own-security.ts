import type { Authenticator } from '@signalbox/http-kit'

import type { SecurityStatus } from '../ports.ts'

const NO_TLS = { enabled: false, mutual: false }

/** Returns the status of a host that does not provide its own: only the management listener is known. */
export function ownSecurity({ anonymous = false }: Authenticator): SecurityStatus {
  return {
    authentication: {
      shared: false,
      management: !anonymous,
      algorithms: [],
      issuer: '',
      audience: [],
      oauth: false,
      since: 0,
    },
    tls: { shared: NO_TLS, management: NO_TLS },
  }
}
