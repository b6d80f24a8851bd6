import type { LookupAddress } from 'node:dns'
import { get } from 'node:http'
import { networkInterfaces } from 'node:os'

import { NameResolver } from '@signalbox/http-kit/internal'
import { openNameServer } from '@signalbox/testkit/name-server'
import { testServer } from '@signalbox/testkit/test-server'
import * as fc from 'fast-check'
import { cases } from '@signalbox/testkit/property-cases'
import { expect, test } from 'vitest'

import { AgentAddressPolicy } from '../src/index.ts'
import type { AgentAddressOptions } from '../src/index.ts'
import { ALICE, card, openBench } from './registry-bench.ts'

/** A policy whose names resolve to these addresses. */
function policy(
  names: Readonly<Record<string, readonly string[]>>,
  options: AgentAddressOptions = {},
): AgentAddressPolicy {
  return new AgentAddressPolicy({
    ...options,
    resolve: async (host) => {
      const addresses = names[host]
      if (addresses === undefined) throw new Error(`getaddrinfo ENOTFOUND ${host}`)
      return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    },
  })
}

/** Whether a url passes at registration, and its host again when it is called. */
async function passes(checked: AgentAddressPolicy, url: string): Promise<boolean> {
  const parsed = new URL(url)
  const atRegistration = (await checked.check(parsed)) === undefined
  const atConnect = checked.hostCheck(parsed)()
  // A literal address is judged the same at both times.
  const literal = /^[\d.]+$|^\[/.test(parsed.hostname)
  expect(literal && atConnect !== atRegistration, url).toBe(false)
  return atRegistration
}

function lookUp(checked: AgentAddressPolicy, host: string, family?: 4 | 6): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    checked.lookupFor(new URL('http://any'))(
      host,
      { all: true, ...(family === undefined ? {} : { family }) },
      (error, addresses) => {
        if (error) reject(error)
        else resolve((addresses as LookupAddress[]).map(({ address }) => address))
      },
    )
  })
}

test('R8 - addresses: link-local, metadata, unspecified, multicast and broadcast are refused in every spelling', async () => {
  const checked = policy({})
  const refused = [
    '169.254.169.254',
    '169.254.0.0',
    '169.254.255.255',
    '169.254.170.2',
    '0.0.0.0',
    '0.1.2.3',
    '224.0.0.1',
    '239.255.255.255',
    '255.255.255.255',
    '100.100.100.200',
    '192.0.0.192',
    '168.63.129.16',
    // As URL reads them: decimal, hexadecimal, octal, short.
    '2852039166',
    '0xa9fea9fe',
    '0xA9.0xFE.0xA9.0xFE',
    '0251.0376.0251.0376',
    '169.254.43518',
    '0',
    '0x0',
    '[::]',
    '[fe80::1]',
    '[febf:ffff::1]',
    '[ff02::1]',
    '[fd00:ec2::254]',
    '[fd00:ec2::23]',
    '[fd20:ce::254]',
    // IPv4 inside IPv6: mapped, compatible, translated, 6to4, NAT64 (well-known and local), Teredo, ISATAP.
    '[::ffff:169.254.169.254]',
    '[::ffff:a9fe:a9fe]',
    '[0:0:0:0:0:ffff:a9fe:a9fe]',
    '[::169.254.169.254]',
    '[::ffff:0:169.254.169.254]',
    '[2002:a9fe:a9fe::1]',
    '[64:ff9b::169.254.169.254]',
    '[64:ff9b:1::169.254.169.254]',
    '[64:ff9b:1:a9fe:a9:fe00::]',
    '[2001:0:a9fe:a9fe::]',
    '[2001:0:102:304:0:0:5601:5601]',
    '[2001:db8::5efe:169.254.169.254]',
    '[2001:db8::200:5efe:169.254.169.254]',
    '[::ffff:0.0.0.0]',
    'metadata.google.internal',
    'METADATA.google.internal.',
    'metadata.goog',
  ]
  for (const host of refused) expect(await passes(checked, `http://${host}/`), host).toBe(false)
})

test('R8 - addresses: loopback, private and public ones are allowed unless denied', async () => {
  const checked = policy({})
  const allowed = [
    '127.0.0.1',
    '0x7f.1',
    '2130706433',
    '017700000001',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.1.1',
    '1.2.3.4',
    '169.253.255.255',
    '169.255.0.0',
    '100.100.100.201',
    '[::1]',
    '[fd00::1]',
    '[fec0::1]',
    '[2001:db8::1]',
    '[::ffff:127.0.0.1]',
    '[2002:a00:1::1]',
  ]
  for (const host of allowed) expect(await passes(checked, `http://${host}:81/x`), host).toBe(true)
  const denying = policy({}, { deny: ['127.0.0.0/8', '10.0.0.0/8', '::1', 'fd00::/8'] })
  for (const host of [
    '127.0.0.1',
    '0x7f.1',
    '2130706433',
    '10.255.0.1',
    '[::1]',
    '[fd12::1]',
    '[::ffff:127.0.0.1]',
    '[2002:a00:1::1]',
    '[64:ff9b::10.1.1.1]',
  ]) {
    expect(await passes(denying, `http://${host}/`), host).toBe(false)
  }
  for (const host of ['128.0.0.1', '11.0.0.1', '[2001:db8::2]', '[fe00::1]'])
    expect(await passes(denying, `http://${host}/`)).toBe(true)
})

test('R8 - addresses: an allow list is exhaustive, and denied or always refused addresses stay refused', async () => {
  const names = {
    'a.example.com': ['10.1.0.1'],
    'b.example.com': ['10.2.0.1'],
    'c.org': ['10.1.0.9'],
    'd.org': ['8.8.8.8'],
  }
  const checked = policy(names, {
    allow: ['10.1.0.0/16', '*.example.com', '169.254.169.254', 'metadata.google.internal', '2001:db8::/32'],
    deny: ['10.1.0.1', 'z.example.com'],
  })
  for (const [host, expected] of [
    ['10.1.0.2', true],
    ['10.1.0.1', false],
    ['10.2.0.1', false],
    ['[2001:db8::5]', true],
    ['[2001:db9::5]', false],
    ['[::ffff:10.1.0.2]', true],
    ['[64:ff9b::10.1.0.2]', false],
    ['169.254.169.254', false],
    ['metadata.google.internal', false],
    ['a.example.com', false],
    ['b.example.com', true],
    ['B.EXAMPLE.com.', true],
    ['unresolved.example.com', true],
    ['z.example.com', false],
    ['c.org', true],
    ['d.org', false],
  ] as const) {
    expect(await passes(checked, `http://${host}/`), host).toBe(expected)
  }
  const hosts = policy(
    { 'example.com': ['1.1.1.1'], 'x.example.com': ['1.1.1.1'], 'notexample.com': ['1.1.1.1'] },
    { allow: ['*.example.com'] },
  )
  expect(await passes(hosts, 'http://example.com')).toBe(false)
  expect(await passes(hosts, 'http://notexample.com')).toBe(false)
  expect(await passes(hosts, 'http://x.example.com')).toBe(true)
})

test('R8 - addresses: a list entry that is neither address nor host stops the start', () => {
  for (const entry of [
    '',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0/8',
    '300.1.1.1',
    '::/129',
    '10.0.0.0/8/8',
    '*',
    'a.*.com',
    'http://a',
    'a b',
    '-a.com',
    '1.2.3',
  ]) {
    expect(() => new AgentAddressPolicy({ deny: [entry] }), entry).toThrow(RangeError)
  }
  const entries = [
    '10.0.0.0/8',
    '1.2.3.4',
    '::1',
    '[::1]',
    'fe80::/10',
    '0.0.0.0/0',
    'a',
    'A.b-c.example',
    '*.example.com',
    ' spaced.example ',
  ]
  expect(() => new AgentAddressPolicy({ allow: entries, deny: entries })).not.toThrow()
})

test('R8 - addresses: a name is judged by its addresses; one without an address yet passes', async () => {
  const checked = policy({
    'metadata.evil.example': ['169.254.169.254'],
    'six.evil.example': ['fe80::1%eth0'],
    'mapped.evil.example': ['::ffff:169.254.169.254'],
    'mixed.example': ['169.254.169.254', '10.0.0.1'],
    'fine.example': ['10.0.0.1', '::1'],
  })
  for (const host of ['metadata.evil.example', 'six.evil.example', 'mapped.evil.example']) {
    expect(await passes(checked, `http://${host}/`), host).toBe(false)
    await expect(lookUp(checked, host)).rejects.toMatchObject({ code: 'AGENT_ADDRESS_REFUSED' })
  }
  expect(await passes(checked, 'http://nowhere.example/')).toBe(true)
  await expect(lookUp(checked, 'nowhere.example')).rejects.toThrow('ENOTFOUND')
  expect(await lookUp(checked, 'mixed.example')).toEqual(['10.0.0.1'])
  expect(await lookUp(checked, 'fine.example')).toEqual(['10.0.0.1', '::1'])
  expect(await lookUp(checked, 'fine.example', 6)).toEqual(['::1'])
  await expect(lookUp(checked, 'mixed.example', 6)).rejects.toMatchObject({ code: 'AGENT_ADDRESS_REFUSED' })
})

test('R8 - addresses: a name that leads elsewhere when it is called is not connected to', async () => {
  const server = await testServer((_request, response) => response.end('the agent'))
  const { port } = server
  const addresses: Record<string, string[]> = { 'agent.example': ['127.0.0.1'] }
  const checked = policy(addresses, { deny: ['127.0.0.2'] })
  const call = (): Promise<string> =>
    new Promise((resolve, reject) => {
      get(
        `http://agent.example:${port}/`,
        { lookup: checked.lookupFor({ protocol: 'http:', port: String(port) }), agent: false },
        (response) => {
          response.setEncoding('utf8').on('data', resolve)
        },
      ).on('error', reject)
    })
  expect(await call()).toBe('the agent')
  for (const address of ['127.0.0.2', '169.254.169.254', '::ffff:127.0.0.2']) {
    addresses['agent.example'] = [address]
    await expect(call()).rejects.toMatchObject({ code: 'AGENT_ADDRESS_REFUSED' })
  }
})

test('R8 - addresses: a silent name server holds up a registration for seconds at the most, and no other registration', async () => {
  await using server = await openNameServer((name) =>
    name === 'agent.example' ? { addresses: ['10.0.0.1'] } : 'silent',
  )
  const { resolve } = new NameResolver({ servers: [server.address] })
  const checked = new AgentAddressPolicy({ deny: ['10.0.0.0/8'], resolve })
  const startedAt = performance.now()
  const hanging = Promise.all(Array.from({ length: 20 }, (_, i) => checked.check(new URL(`http://n${i}.example/`))))
  expect(await checked.check(new URL('http://agent.example/'))).toBeDefined()
  expect(performance.now() - startedAt).toBeLessThan(1_000)
  expect((await hanging).every((verdict) => verdict === undefined)).toBe(true)
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})

/** The same for every refusal: it does not say where a name leads. */
const ANYWHERE_ELSE =
  'a URL whose address the broker may call: not link-local (cloud metadata), not a listener of the broker itself, not in CONNECTORSA2_A_AGENT_URL_DENY'

test('R8, AGENT-4 - addresses: a refused one is a problem of the card, in general words that say which are allowed', async () => {
  const { node } = await openBench()
  const addressPolicy = policy({ 'inside.example': ['10.9.8.7'] }, { deny: ['10.0.0.0/8'] })
  const registry = await node({ addressPolicy })
  for (const url of ['http://169.254.169.254/latest', 'http://inside.example/', 'http://[::ffff:10.1.1.1]/']) {
    const call = registry.register(card('a1', { url, version: 7 }), ALICE)
    await expect(call).rejects.toMatchObject({
      code: 'CARD_INVALID',
      details: [{ field: 'version' }, { field: 'url', allowed: ANYWHERE_ELSE }],
      message: expect.not.stringContaining('10.9.8.7'),
    })
  }
  expect(registry.size).toBe(0)
  await registry.register(card('a1', { url: 'http://localhost:1/' }), ALICE)
})

const hex = (high: number, low: number): string => (high * 256 + low).toString(16)

test('R8 - addresses: an IPv4 address is refused in every form inside IPv6', async () => {
  const byte = fc.integer({ min: 0, max: 255 })
  await fc.assert(
    fc.asyncProperty(byte, byte, byte, byte, byte, async (prefix, a, b, c, d) => {
      const denied = a === 10
      const checked = policy({}, { deny: ['10.0.0.0/8'] })
      const expected = await passes(checked, `http://${a}.${b}.${c}.${d}/`)
      expect(denied && expected).toBe(false)
      for (const host of [
        `[::ffff:${hex(a, b)}:${hex(c, d)}]`,
        `[64:ff9b::${hex(a, b)}:${hex(c, d)}]`,
        `[2002:${hex(a, b)}:${hex(c, d)}:${hex(prefix, 1)}::1]`,
        `[64:ff9b::${a}.${b}.${c}.${d}]`,
      ]) {
        expect(await passes(checked, `http://${host}/`), host).toBe(expected)
      }
    }),
    {
      seed: 8,
      numRuns: cases(300),
      examples: [
        [0, 10, 0, 0, 1],
        [0, 169, 254, 1, 1],
        [0, 127, 0, 0, 1],
        [1, 224, 0, 0, 1],
      ],
    },
  )
})

test("R8 - addresses: the server's own listeners are refused on their ports, at registration and at each connection", async () => {
  const [machine = '127.0.0.1'] = Object.values(networkInterfaces()).flatMap(
    (each) =>
      each?.filter(({ internal, family }) => !internal && family === 'IPv4').map(({ address }) => address) ?? [],
  )
  const names = { 'me.example': ['127.0.0.1'], 'both.example': ['192.0.2.1', machine], 'other.example': ['192.0.2.1'] }
  const listening = [
    { host: '0.0.0.0', port: 9090 },
    { host: '127.0.0.1', port: 80 },
    { host: '::1', port: 8443 },
  ]
  const own = [
    'http://127.0.0.1:9090',
    `http://${machine}:9090`,
    'http://127.9.9.9:9090',
    'http://[::1]:9090',
    'http://[::ffff:127.0.0.1]:9090',
    'http://[64:ff9b::127.0.0.1]:9090',
    'http://me.example:9090',
    'http://both.example:9090',
    'http://127.0.0.1',
    'https://[::1]:8443',
  ]
  const others = ['http://127.0.0.1:9091', 'http://127.0.0.2', 'https://127.0.0.1:8443', 'http://other.example:9090']
  let open: typeof listening = []
  const checked = policy(names, { ownAddresses: () => open })
  const refused = async (url: string): Promise<readonly boolean[]> => {
    const parsed = new URL(url)
    const reached = await new Promise<boolean>((resolve) => {
      if (!checked.hostCheck(parsed)()) resolve(false)
      if (/example/.test(url)) checked.lookupFor(parsed)(parsed.hostname, {}, (error) => resolve(error === null))
      else resolve(true)
    })
    return [(await checked.check(parsed)) !== undefined, !reached]
  }
  for (const url of [...own, ...others]) expect(await refused(url), url).toEqual([false, false])
  open = listening
  // Of a name with several addresses the others may still be connected to.
  for (const url of own) expect(await refused(url), url).toEqual([true, !url.includes('both')])
  for (const url of others) expect(await refused(url), url).toEqual([false, false])
})

test('R8 - addresses: a connection whose callback throws affects no other connection', async () => {
  const called = Promise.withResolvers<void>()
  policy({ 'a.example': ['192.0.2.1'] }).lookupFor({ protocol: 'http:', port: '' })('a.example', {}, () => {
    called.resolve()
    throw new Error('a bug of the connection')
  })
  await called.promise
  // An unhandled rejection fails the run in the turn after.
  await new Promise((resolve) => setImmediate(resolve))
  expect(await passes(policy({}), 'http://192.0.2.1')).toBe(true)
})
