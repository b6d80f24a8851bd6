import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { SignJWT } from 'jose'

import type { ServerKind } from './server-kind.ts'
import type { Identity } from './caller.ts'

const SECRET = 'a secret of the attack tool, of 32 bytes or more'

/** What attackers may use, where there is a policy. */
const ATTACK_PREFIX = 'attack'

/** Who callers are: tokens on the guarded server, addresses on the other. */
export class Identities {
  readonly #kind: ServerKind
  readonly #tokens = new Map<string, string>()

  private constructor(kind: ServerKind) {
    this.#kind = kind
  }

  /** @param attackers How many of them there will be at most */
  static async create(kind: ServerKind, attackers: number): Promise<Identities> {
    const identities = new Identities(kind)
    if (kind === 'default') return identities
    const named = ['honest', 'nobody', ...Array.from({ length: attackers }, (_, index) => attackerName(index))]
    for (const name of named) identities.#tokens.set(name, await token(name, []))
    identities.#tokens.set('operator', await token('operator', ['Admin']))
    identities.#tokens.set('viewer', await token('viewer', ['ReadOnly']))
    return identities
  }

  attacker(index: number): Identity {
    return this.#identity(attackerName(index), `127.1.${Math.floor(index / 200)}.${2 + (index % 200)}`)
  }

  /** The other caller. */
  get honest(): Identity {
    return this.#identity('honest', '127.0.0.2')
  }

  /** Scrapes the metrics. */
  get operator(): Identity {
    return this.#identity('operator', '127.0.0.1')
  }

  /** An attacker who may look at the management listener. */
  get viewer(): Identity {
    return this.#identity('viewer', '127.4.0.1')
  }

  /** A caller with a valid token that the policy allows nothing. On the default server, any other attacker. */
  get nobody(): Identity {
    return this.#identity('nobody', '127.2.0.1')
  }

  /** A caller without a token. */
  get stranger(): Identity {
    return { name: 'stranger', address: '127.3.0.1', headers: {} }
  }

  #identity(name: string, address: string): Identity {
    if (this.#kind === 'default') return { name, address, headers: {} }
    // Limits go by ClientID there, but connections are counted by address.
    return { name, address, headers: { authorization: `Bearer ${this.#tokens.get(name) ?? ''}` } }
  }
}

/** The settings of the guarded server: attackers may use what is named after them, the honest caller what is its own. */
export function guardedSettings(folder: string): Readonly<Record<string, string>> {
  const policyFile = join(folder, 'policy.json')
  const everything = { actions: '*', patterns: '*', effect: 'allow' }
  const rules = [
    { clients: 'honest', channels: 'honest*', ...everything },
    { clients: 'attacker-*', channels: `${ATTACK_PREFIX}*`, ...everything },
  ]
  writeFileSync(policyFile, JSON.stringify({ rules }))
  return {
    AUTHENTICATION_ENABLE: 'true',
    AUTHENTICATION_SECRET: SECRET,
    AUTHORIZATION_ENABLE: 'true',
    AUTHORIZATION_POLICY_FILE: policyFile,
    API_AUTHENTICATION_ENABLE: 'true',
  }
}

function attackerName(index: number): string {
  return `attacker-${index}`
}

function token(name: string, roles: readonly string[]): Promise<string> {
  return new SignJWT({ ClientID: name, roles })
    .setProtectedHeader({ alg: 'HS256' })
    .setExpirationTime('6h')
    .sign(Buffer.from(SECRET))
}
