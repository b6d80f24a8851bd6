import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { SignJWT } from 'jose'

import { newFolder } from './processes.ts'
import type { BenchContext } from './row.ts'

/** Settings of a server that verifies a token, applies a policy and logs a line for each request; and such a token. */
export interface Guard {
  readonly env: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
}

export async function guard(context: BenchContext): Promise<Guard> {
  const folder = newFolder(context)
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keyFile = join(folder, 'public.pem')
  writeFileSync(keyFile, publicKey.export({ type: 'spki', format: 'pem' }))
  // A few rules for other clients, and then the one that decides.
  const others = Array.from({ length: 20 }, (_, i) => ({ clients: `other-${i}`, effect: 'deny' }))
  const anything = { clients: '*', actions: '*', patterns: '*', channels: '*', effect: 'allow' }
  const policyFile = join(folder, 'policy.json')
  writeFileSync(policyFile, JSON.stringify({ rules: [...others, {}].map((rule) => Object.assign({}, anything, rule)) }))
  const token = await new SignJWT({
    ClientID: 'bench',
    aud: 'signalbox',
    iss: 'https://id.example',
    roles: ['ReadWrite'],
  })
    .setProtectedHeader({ alg: 'ES256', kid: 'bench' })
    .setExpirationTime('1h')
    .sign(privateKey)
  return {
    env: {
      AUTHENTICATION_ENABLE: 'true',
      AUTHENTICATION_KEY_FILE: keyFile,
      AUTHORIZATION_ENABLE: 'true',
      AUTHORIZATION_POLICY_FILE: policyFile,
      LOG_LEVEL: 'info',
    },
    headers: { Authorization: `Bearer ${token}` },
  }
}
