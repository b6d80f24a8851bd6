import { writeFile } from 'node:fs/promises'

import { openNameServer } from '@signalbox/testkit/name-server'
import type { NameServer } from '@signalbox/testkit/name-server'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { expect, onTestFinished, test } from 'vitest'

import { NameResolver } from '../src/internal.ts'

interface Bench {
  readonly server: NameServer
  readonly resolver: NameResolver
  /** Resolves a name to the texts of its addresses. */
  readonly addresses: (name: string, account?: string) => Promise<readonly string[]>
  readonly write: (file: 'hosts' | 'resolver', text: string) => Promise<void>
}

/** A resolver that asks a name server on loopback, with files of its own. */
async function open(answer: NameServer['answer'], texts: { hosts?: string; resolver?: string } = {}): Promise<Bench> {
  const server = await openNameServer(answer)
  onTestFinished(() => server[Symbol.asyncDispose]())
  const folder = await TemporaryFolder.create('names')
  onTestFinished(() => folder[Symbol.asyncDispose]())
  const files = { hosts: folder.join('hosts'), resolver: folder.join('resolv.conf') }
  const write: Bench['write'] = (file, text) => writeFile(files[file], text)
  for (const file of ['hosts', 'resolver'] as const) if (texts[file] !== undefined) await write(file, texts[file])
  const resolver = new NameResolver({ servers: [server.address], files, lookMs: 0 })
  return {
    server,
    resolver,
    addresses: async (name, account) => (await resolver.resolve(name, account)).map(({ address }) => address),
    write,
  }
}

const found = (...addresses: readonly string[]) => ({ addresses })

/** The failure of a lookup, and the time it took, in ms. */
async function failureOf(lookup: Promise<unknown>): Promise<{ readonly code: unknown; readonly ms: number }> {
  const startedAt = performance.now()
  const code: unknown = await lookup.then(
    () => 'no failure',
    (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
  )
  return { code, ms: performance.now() - startedAt }
}

test('names - a name resolves to its addresses of both families, IPv4 first', async () => {
  const { addresses } = await open(() => found('2001:db8::7', '192.0.2.1', '192.0.2.2'))
  expect(await addresses('Agent.Example')).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8::7'])
})

test('names - one family is enough when the name server never answers for the other', async () => {
  const { addresses } = await open((_name, family) => (family === 6 ? 'silent' : found('192.0.2.1')))
  const startedAt = performance.now()
  expect(await addresses('agent.example')).toEqual(['192.0.2.1'])
  expect(performance.now() - startedAt).toBeLessThan(1_500)
  const only6 = await open((_name, family) => (family === 4 ? 'failing' : found('2001:db8::7')))
  expect(await only6.addresses('agent.example')).toEqual(['2001:db8::7'])
})

test('names - addresses are used for their TTL, and simultaneous lookups of a name are one', async () => {
  let last = 0
  const { addresses, server } = await open(() => ({ addresses: [`192.0.2.${++last}`], ttl: 1 }))
  const [first] = await Promise.all(Array.from({ length: 20 }, () => addresses('agent.example')))
  expect(await addresses('agent.example')).toEqual(first)
  expect(server.asked).toEqual(['agent.example 4', 'agent.example 6'])
  await expect.poll(() => addresses('agent.example'), { timeout: 5_000 }).not.toEqual(first)
})

test('names - a name that does not exist is not asked again for some seconds', async () => {
  const { addresses, server } = await open(() => 'absent')
  for (let i = 0; i < 3; i++) {
    expect(await failureOf(addresses('nowhere.example'))).toMatchObject({ code: 'ENOTFOUND' })
  }
  expect(server.asked).toHaveLength(2)
})

test('names - a silent name server fails a name within three seconds, and then at once', async () => {
  const { addresses } = await open(() => 'silent')
  const first = await failureOf(addresses('hang.example'))
  expect(first.code).toBe('EAI_AGAIN')
  expect(first.ms).toBeLessThan(3_900)
  const again = await failureOf(addresses('hang.example'))
  expect(again.code).toBe('EAI_AGAIN')
  expect(again.ms).toBeLessThan(500)
})

test('names - an answer of a slow name server is still used', async () => {
  const { addresses } = await open(async () => {
    await new Promise((resolve) => setTimeout(resolve, 1_200))
    return found('192.0.2.1')
  })
  expect(await addresses('agent.example')).toEqual(['192.0.2.1'])
})

test('names - names of one account that hang delay no name of another account', async () => {
  const { addresses, server } = await open((name) => (name.startsWith('hang') ? 'silent' : found('192.0.2.1')))
  const hanging = Array.from({ length: 1_000 }, (_, i) => failureOf(addresses(`hang${i}.example`, 'mallory')))
  // The kernel drops some of the many questions.
  await expect.poll(() => server.asked.length).toBeGreaterThan(100)
  const startedAt = performance.now()
  expect(await addresses('agent.example', 'alice')).toEqual(['192.0.2.1'])
  expect(performance.now() - startedAt).toBeLessThan(1_000)
  const failures = await Promise.all(hanging)
  expect(failures.every(({ code }) => code === 'EAI_AGAIN')).toBe(true)
  expect(Math.max(...failures.map(({ ms }) => ms))).toBeLessThan(4_500)
})

test('names - localhost and the names below it are loopback, without a question', async () => {
  const { addresses, server } = await open(() => found('192.0.2.1'), { hosts: '192.0.2.9 localhost\n' })
  for (const name of ['localhost', 'LOCALHOST.', 'agent.localhost']) {
    expect(await addresses(name), name).toEqual(['127.0.0.1', '::1'])
  }
  expect(server.asked).toEqual([])
})

test('names - the hosts file comes before the name servers, and its changes are noticed', async () => {
  const hosts = '# a comment\n192.0.2.5\tDatabase db # two names\n2001:db8::5 db\nnot-an-address other\n'
  const { addresses, server, write } = await open(() => 'absent', { hosts })
  expect(await addresses('database')).toEqual(['192.0.2.5'])
  expect(await addresses('db')).toEqual(['192.0.2.5', '2001:db8::5'])
  expect(server.asked).toEqual([])
  await expect(addresses('other')).rejects.toMatchObject({ code: 'ENOTFOUND' })
  await write('hosts', '192.0.2.6 database\n')
  expect(await addresses('database')).toEqual(['192.0.2.6'])
})

test('names - search domains are tried as the C library does: first for a name with few dots, else last', async () => {
  const resolver = 'search ns.svc.cluster.local svc.cluster.local\noptions timeout:1 ndots:2\n'
  const { addresses, server } = await open(
    (name) => (['agent.ns.svc.cluster.local', 'b.c.d.svc.cluster.local'].includes(name) ? found('10.0.0.1') : 'absent'),
    { resolver },
  )
  expect(await addresses('agent.ns')).toEqual(['10.0.0.1'])
  expect(await addresses('b.c.d')).toEqual(['10.0.0.1'])
  const asked = server.asked.filter((one) => one.endsWith(' 4')).map((one) => one.slice(0, -2))
  expect(asked).toEqual([
    'agent.ns.ns.svc.cluster.local',
    'agent.ns.svc.cluster.local',
    'b.c.d',
    'b.c.d.ns.svc.cluster.local',
    'b.c.d.svc.cluster.local',
  ])
})

test('names - a failure names the host alone, not the search domains of the server', async () => {
  const { resolver } = await open(() => 'absent', { resolver: 'search inside.corp\n' })
  await expect(resolver.resolve('agent')).rejects.toThrow('agent has no address')
})

test('names - an address resolves to itself, and a text that is no name fails', async () => {
  const { addresses, server } = await open(() => found('192.0.2.1'))
  expect(await addresses('192.0.2.7')).toEqual(['192.0.2.7'])
  expect(await addresses('[2001:db8::1]')).toEqual(['2001:db8::1'])
  for (const name of ['', `${'a'.repeat(64)}.example`, 'a.'.repeat(200)]) {
    await expect(addresses(name), name).rejects.toMatchObject({ code: 'ENOTFOUND' })
  }
  expect(server.asked).toEqual([])
})
