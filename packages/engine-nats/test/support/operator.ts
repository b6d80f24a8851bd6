import { createAccount, createOperator, createUser } from '@nats-io/nkeys'
import type { KeyPair } from '@nats-io/nkeys'

/** A server configuration that takes users by signed credentials, and such credentials. */
export interface Operator {
  readonly config: string
  /** What a credentials file holds. */
  readonly creds: string
  /** Credentials of a user whom the account does not know. */
  readonly foreignCreds: string
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function jwt(issuer: KeyPair, subject: KeyPair, name: string, nats: object): string {
  const claims = {
    jti: name,
    iat: Math.floor(Date.now() / 1000),
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    name,
    nats: { version: 2, ...nats },
  }
  const content = `${encode({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encode(claims)}`
  return `${content}.${Buffer.from(issuer.sign(Buffer.from(content))).toString('base64url')}`
}

function credsOf(account: KeyPair): string {
  const user = createUser()
  const limits = { subs: -1, data: -1, payload: -1 }
  const seed = new TextDecoder().decode(user.getSeed())
  return [
    '-----BEGIN NATS USER JWT-----',
    jwt(account, user, 'user', { type: 'user', pub: {}, sub: {}, ...limits }),
    '------END NATS USER JWT------',
    '',
    '-----BEGIN USER NKEY SEED-----',
    seed,
    '------END USER NKEY SEED------',
    '',
  ].join('\n')
}

export function makeOperator(): Operator {
  const [operator, system, account] = [createOperator(), createAccount(), createAccount()]
  const limits = { subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 }
  const storage = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 }
  const permissions = { default_permissions: { pub: {}, sub: {} } }
  const accountJwt = jwt(operator, account, 'account', {
    type: 'account',
    limits: { ...limits, ...storage },
    ...permissions,
  })
  const systemJwt = jwt(operator, system, 'system', { type: 'account', limits, ...permissions })
  return {
    config: [
      `operator: ${jwt(operator, operator, 'operator', { type: 'operator', system_account: system.getPublicKey() })}`,
      `system_account: ${system.getPublicKey()}`,
      'resolver: MEMORY',
      'resolver_preload: {',
      `  ${account.getPublicKey()}: ${accountJwt}`,
      `  ${system.getPublicKey()}: ${systemJwt}`,
      '}',
    ].join('\n'),
    creds: credsOf(account),
    foreignCreds: credsOf(createAccount()),
  }
}
