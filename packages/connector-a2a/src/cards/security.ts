import type { JsonObject } from '@signalbox/http-kit'

/**
 * The scope in the requirement of A2A 1.0. Bearer tokens have no scopes, but the SDKs drop an empty list
 * before they verify a signature, and the specification keeps it.
 */
const SCOPE = 'a2a'

/** Returns the gateway's security as A2A 1.0 writes it: a bearer token, or none. */
export function securityV10(bearer: boolean): JsonObject {
  if (!bearer) return {}
  return {
    securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'bearer' } } },
    securityRequirements: [{ schemes: { bearer: { list: [SCOPE] } } }],
  }
}

/**
 * Returns the gateway's security as A2A 0.3 and A2A 1.0 write it. The scheme has the members of both
 * versions: the Go SDK refuses a card in which one of them cannot be read.
 */
export function securityOfBoth(bearer: boolean): JsonObject {
  if (!bearer) return {}
  const scheme = 'bearer'
  return {
    ...securityV10(bearer),
    securitySchemes: { bearer: { type: 'http', scheme, httpAuthSecurityScheme: { scheme } } },
    security: [{ bearer: [] }],
  }
}
