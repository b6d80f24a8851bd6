import type { KeyObject } from 'node:crypto'
import { generateKeyPairSync } from 'node:crypto'

import type { JWTPayload } from 'jose'
import { SignJWT } from 'jose'

import type { AuthenticationRequest } from '../../src/index.ts'

/** A key pair with an id. */
export interface TestKey {
  readonly kid: string
  readonly alg: string
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
}

export function ecKey(kid: string): TestKey {
  return { kid, alg: 'ES256', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) }
}

export function rsaKey(kid: string, modulusLength = 2048): TestKey {
  return { kid, alg: 'RS256', ...generateKeyPairSync('rsa', { modulusLength }) }
}

export function pem({ publicKey }: TestKey): string {
  return publicKey.export({ type: 'spki', format: 'pem' }).toString()
}

/** The text of a key set with these keys. */
export function keySet(...keys: readonly TestKey[]): string {
  return JSON.stringify({
    keys: keys.map(({ kid, publicKey }) => Object.assign(publicKey.export({ format: 'jwk' }), { kid, use: 'sig' })),
  })
}

/** Seconds since the epoch, `after` now. */
export function seconds(after: number): number {
  return Math.floor(Date.now() / 1000) + after
}

export function token(
  { kid, alg, privateKey }: TestKey,
  claims: JWTPayload = {},
  header: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  return new SignJWT({ ClientID: 'alice', exp: seconds(60), ...claims })
    .setProtectedHeader({ alg, kid, ...header })
    .sign(privateKey)
}

/** What node makes of a request with these Authorization headers: all but the first are dropped. */
export function request(...authorization: readonly string[]): AuthenticationRequest {
  const [first] = authorization
  return {
    headers: first === undefined ? {} : { authorization: first },
    rawHeaders: ['Host', 'x', ...authorization.flatMap((value) => ['Authorization', value])],
  }
}
