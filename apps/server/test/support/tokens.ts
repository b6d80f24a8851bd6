import type { KeyObject } from 'node:crypto'
import { generateKeyPairSync } from 'node:crypto'

import type { JWTPayload } from 'jose'
import { SignJWT } from 'jose'
import { testFile } from '@signalbox/testkit/test-folder'

import type { PartialConfig } from '../../src/config/load.ts'

/** A key pair, and tokens by it. */
export interface Issuer {
  readonly kid: string
  readonly publicKey: KeyObject
  readonly pem: string
  /** An Authorization header for this client, good for ten minutes unless the claims say otherwise. */
  readonly bearer: (clientId: string, claims?: JWTPayload) => Promise<string>
}

export function issuer(kid = 'one'): Issuer {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return {
    kid,
    publicKey,
    pem: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    async bearer(clientId, claims = {}) {
      const token = await new SignJWT({ ClientID: clientId, exp: Math.floor(Date.now() / 1000) + 600, ...claims })
        .setProtectedHeader({ alg: 'ES256', kid })
        .sign(privateKey)
      return `Bearer ${token}`
    },
  }
}

/** The text of a key set with the keys of these issuers. */
export function keySet(...issuers: readonly Issuer[]): string {
  return JSON.stringify({
    keys: issuers.map(({ kid, publicKey }) => Object.assign(publicKey.export({ format: 'jwk' }), { kid })),
  })
}

/** The settings of a server that takes this issuer's tokens, on both listeners. */
export function trusting({ pem }: Issuer): PartialConfig {
  return { authentication: { enable: true, keyFile: testFile(pem) }, api: { authentication: { enable: true } } }
}

/** The settings of a server with this policy; a rule left unfinished is about everything, and allows it. */
export function governed(...rules: readonly object[]): PartialConfig {
  return { authorization: { enable: true, policyFile: testFile(policyText(...rules)) } }
}

export function policyText(...rules: readonly object[]): string {
  const anything = { clients: '*', actions: '*', patterns: '*', channels: '*', effect: 'allow' }
  return JSON.stringify({ rules: rules.map((rule) => Object.assign({}, anything, rule)) })
}
