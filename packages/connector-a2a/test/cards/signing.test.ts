import { execFileSync } from 'node:child_process'
import type { KeyObject } from 'node:crypto'
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'

import type { AgentCard } from '@a2a-js/sdk'
import { verifyAgentCardSignature } from '@a2a-js/sdk'
import type { JWK } from 'jose'
import { calculateJwkThumbprint, createRemoteJWKSet, decodeProtectedHeader } from 'jose'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'

import type { CardKeyEvents, CardKeys } from '../../src/index.ts'
import { openCardKeys } from '../../src/index.ts'
import type { GatewayHost, HostOptions } from '../gateway-host.ts'
import { openGateway } from '../gateway-host.ts'
import { keyFile, newJwk, newPem, strictProblems } from './card-members.ts'

const V1 = { 'a2a-version': '1.0' }
const CARD = '/.well-known/agent-card.json'
const OWNER = { clientId: 'owner' }

function opened(file: string, events: CardKeyEvents = {}): CardKeys {
  const keys = openCardKeys(file, events, 20)
  onTestFinished(() => keys[Symbol.dispose]())
  return keys
}

/** The key that signed a card. */
function signer(card: AgentCard): unknown {
  return decodeProtectedHeader({ protected: card.signatures[0]?.protected ?? '' })['kid']
}

function pem(key: KeyObject): string {
  return key.export({ format: 'pem', type: 'pkcs8' }).toString()
}

// The SDK logs each signature that it refuses.
beforeEach(() => {
  const logged = vi.spyOn(console, 'debug').mockReturnValue()
  return () => logged.mockRestore()
})

/** A gateway behind a proxy that clients call by `publicUrl`; the requests of the tests go to it directly. */
async function openSigning(options: HostOptions = {}): Promise<GatewayHost> {
  const cardKeys = opened(keyFile(newPem()))
  const host = await openGateway({ publicUrl: 'https://broker.example/hub/', cardKeys, ...options })
  await host.register('agent-1', 'http://127.0.0.1:1/')
  return host
}

async function cardOf({ base }: GatewayHost, path = '/a2a/agent-1', headers: object = V1): Promise<AgentCard> {
  const response = await fetch(`${base}${path}${CARD}`, { headers: { ...headers } })
  expect(response.status).toBe(200)
  return (await response.json()) as AgentCard
}

async function publishedKeys({ base }: GatewayHost): Promise<readonly JWK[]> {
  const response = await fetch(`${base}/.well-known/jwks.json`)
  return ((await response.json()) as { keys: JWK[] }).keys
}

/** Verifies as a client of the SDK does that trusts the key set of this host. */
async function verify(host: GatewayHost, card: AgentCard): Promise<void> {
  const keys = await publishedKeys(host)
  await verifyAgentCardSignature(async (kid, jku) => {
    expect(jku).toBe('https://broker.example/hub/.well-known/jwks.json')
    const key = keys.find((one) => one.kid === kid)
    if (key === undefined) throw new Error(`no key ${kid}`)
    return key
  })(card)
}

test('A21 - signature: the SDK verifies the card of A2A 1.0, and refuses it after one changed character', async () => {
  const host = await openSigning()
  const hostile = {
    agent_id: 'rich',
    name: 'Ünïcode \u20ac \ud83d\ude42 "quoted" \\ </script>',
    url: 'http://127.0.0.1:1/',
    capabilities: {
      extensions: [
        { uri: 'urn:x', required: false, params: { '\ud83d\ude42': 1e21, z: [1.5, -0, 1e-7], a: '\ud800', n: null } },
      ],
    },
    signatures: [{ protected: 'eyJhbGciOiJub25lIn0', signature: '' }],
  }
  await host.registry.register(hostile, OWNER)
  for (const path of ['', '/a2a/agent-1', '/a2a/rich']) {
    const card = await cardOf(host, path)
    expect(strictProblems(card)).toEqual([])
    expect(card.signatures).toHaveLength(1)
    await verify(host, card)
    for (const changed of [
      { ...card, name: `${card.name}.` },
      { ...card, supportedInterfaces: [{ ...card.supportedInterfaces[0], url: 'https://evil.example/' }] },
      { ...card, skills: [] },
    ]) {
      await expect(verify(host, changed as AgentCard)).rejects.toThrow('No valid signatures')
    }
  }
})

test('A21 - signature: with authentication too, which the SDK drops from a card that it parsed twice', async () => {
  const authenticator = { authenticate: () => ({ clientId: 'alice' }) }
  const host = await openSigning({ authenticator })
  const card = await cardOf(host)
  expect(card).toMatchObject({ securityRequirements: [{ schemes: { bearer: { list: ['a2a'] } } }] })
  await verify(host, card)
})

test('A21 - signature: ES256, typ JOSE, the thumbprint as kid and the URL of the key set', async () => {
  const host = await openSigning()
  const [signature] = (await cardOf(host)).signatures
  const [key] = await publishedKeys(host)
  expect(decodeProtectedHeader({ protected: signature?.protected ?? '' })).toEqual({
    alg: 'ES256',
    typ: 'JOSE',
    kid: await calculateJwkThumbprint(key ?? {}),
    jku: 'https://broker.example/hub/.well-known/jwks.json',
  })
  expect(signature?.signature).toMatch(/^[\w-]{86}$/)
})

test('A21 - signature: the key set is public, has no private part, and can be revalidated', async () => {
  const host = await openSigning({
    authenticator: {
      authenticate() {
        throw new Error('nobody is let in')
      },
    },
  })
  const url = `${host.base}/.well-known/jwks.json`
  const response = await fetch(url, { headers: { origin: 'https://elsewhere.example' } })
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'application/json',
    'cache-control': 'public, max-age=300',
    'access-control-allow-origin': '*',
  })
  expect(await response.json()).toEqual({
    keys: [
      {
        kty: 'EC',
        crv: 'P-256',
        x: expect.any(String),
        y: expect.any(String),
        kid: expect.any(String),
        use: 'sig',
        alg: 'ES256',
      },
    ],
  })
  const etag = response.headers.get('etag') ?? ''
  expect((await fetch(url, { headers: { 'if-none-match': etag } })).status).toBe(304)
  expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(405)
  // The library of verifiers reads it.
  const find = createRemoteJWKSet(new URL(url))
  expect(await find({ alg: 'ES256' }, { payload: '', signature: '' })).toMatchObject({ type: 'public' })
})

test('A21 - signature: a forged Host gets no signature, and neither does a card of both versions', async () => {
  const cardKeys = opened(keyFile(newPem()))
  const open = await openGateway({ cardKeys })
  await open.register('agent-1', 'http://127.0.0.1:1/')
  for (const path of ['', '/a2a/agent-1']) expect(await cardOf(open, path)).not.toHaveProperty('signatures')
  const signing = await openSigning()
  for (const path of ['', '/a2a/agent-1']) expect(await cardOf(signing, path, {})).not.toHaveProperty('signatures')
  const forged = await cardOf(signing, '/a2a/agent-1', {
    ...V1,
    'x-forwarded-host': 'evil.example',
    forwarded: 'host=evil.example',
  })
  expect(JSON.stringify(forged)).not.toContain('evil')
})

test('A21 - rotation: at every step, cards from before it and after it verify with the published keys', async () => {
  const [old, next] = [newPem(), newPem()]
  const file = keyFile(old)
  let changed = Promise.withResolvers<readonly string[]>()
  const cardKeys = opened(file, { changed: (kids) => changed.resolve(kids) })
  const host = await openSigning({ cardKeys })
  const step = async (...keys: readonly string[]): Promise<readonly string[]> => {
    changed = Promise.withResolvers()
    writeFileSync(file, keys.join(''))
    return changed.promise
  }
  const first = await cardOf(host)
  const [oldKid] = (await publishedKeys(host)).map(({ kid }) => kid)
  expect(signer(first)).toBe(oldKid)

  const [, nextKid] = await step(old, next)
  const second = await cardOf(host)
  expect([signer(second), (await publishedKeys(host)).map(({ kid }) => kid)]).toEqual([oldKid, [oldKid, nextKid]])
  for (const card of [first, second]) await verify(host, card)

  const response = await fetch(`${host.base}/a2a/agent-1${CARD}`, { headers: V1 })
  await step(next, old)
  const third = await cardOf(host)
  expect(signer(third)).toBe(nextKid)
  for (const card of [first, second, third]) await verify(host, card)
  // A cache learns of the new signature.
  const again = { ...V1, 'if-none-match': response.headers.get('etag') ?? '' }
  expect((await fetch(`${host.base}/a2a/agent-1${CARD}`, { headers: again })).status).toBe(200)

  await step(next)
  await verify(host, await cardOf(host))
  await verify(host, third)
  await expect(verify(host, first)).rejects.toThrow('No valid signatures')
})

test('A21 - keys: a changed file without usable keys is reported, and the earlier keys stay', async () => {
  const file = keyFile(newPem())
  const failed = Promise.withResolvers<string>()
  const keys = opened(file, { failed: (reason) => failed.resolve(reason) })
  const [before] = keys.keys
  writeFileSync(file, 'nothing')
  expect(await failed.promise).toBe(
    `${JSON.stringify(file)}: it has no keys; allowed: one or more private keys of EC P-256 without passphrase, in PEM or as a JSON Web Key Set {"keys": […]}`,
  )
  expect(keys.keys).toEqual([before])
})

test('A21 - keys: PEM in both forms and key sets are read, repeated keys once', () => {
  const sec1 = execFileSync('openssl', ['ecparam', '-name', 'prime256v1', '-genkey'], { encoding: 'utf8' })
  expect(sec1).toContain('BEGIN EC PARAMETERS')
  expect(opened(keyFile(sec1, newPem())).keys).toHaveLength(2)
  expect(opened(keyFile(JSON.stringify({ keys: [newJwk(), newJwk()] }))).keys).toHaveLength(2)
  const same = newPem()
  expect(opened(keyFile(same, same)).keys).toHaveLength(1)
})

test('A21 - keys: every other key is refused, without showing it', () => {
  const { d: _private, ...publicJwk } = newJwk() as { d: string }
  const encrypted = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    format: 'pem',
    type: 'pkcs8',
    cipher: 'aes-256-cbc',
    passphrase: 'secret',
  })
  const publicPem = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'pem', type: 'spki' })
  const refused = [
    pem(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey),
    pem(generateKeyPairSync('ed25519').privateKey),
    pem(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey),
    String(encrypted),
    String(publicPem),
    '-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n',
    JSON.stringify({ keys: [publicJwk] }),
    JSON.stringify({ keys: ['secret', null] }),
    JSON.stringify({ keys: [] }),
    JSON.stringify([newJwk()]),
    '',
  ]
  for (const text of refused) {
    const file = keyFile(text)
    let message = ''
    try {
      openCardKeys(file)
    } catch (error) {
      message = String(error)
    }
    expect(message, text).toMatch(/^RangeError: ".*card-keys\.pem": .*; allowed: one or more private keys of EC P-256/)
    expect(message).not.toMatch(/secret|c2Vj/)
  }
  // One bad key among good ones is named.
  expect(() => openCardKeys(keyFile(newPem(), String(publicPem)))).toThrow('key 2 is not a private key of EC P-256')
  expect(() => openCardKeys('/no/such/file')).toThrow(RangeError)
})
