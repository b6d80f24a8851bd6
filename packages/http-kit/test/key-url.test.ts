import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

import { expect, onTestFinished, test } from 'vitest'

import type { BearerAuthenticator, KeyUrlTimes } from '../src/index.ts'
import { AuthenticationError, bearerAuthenticator } from '../src/index.ts'
import { keyServer } from './support/key-server.ts'
import type { TestKey } from './support/tokens.ts'
import { ecKey, keySet, request, token } from './support/tokens.ts'

const OLD = ecKey('old')
const NEW = ecKey('new')

/** Short times, so that a test sees them pass. */
const TIMES: KeyUrlTimes = { maxAgeMs: 600_000, cooldownMs: 200, retryMs: 50, timeoutMs: 20_000 }

function open(jwksUrl: string, times: KeyUrlTimes = {}): BearerAuthenticator & { readonly told: string[] } {
  const told: string[] = []
  const authenticator = bearerAuthenticator({
    keys: { jwksUrl, times: { ...TIMES, ...times } },
    hooks: { changed: () => void told.push('changed'), failed: (reason) => void told.push(reason) },
  })
  onTestFinished(() => authenticator[Symbol.dispose]())
  return Object.assign(authenticator, { told })
}

/** Whether a new token of this key is let in. */
async function lets(authenticator: BearerAuthenticator, key: TestKey): Promise<boolean> {
  const bearer = await token(key, { jti: String(Math.random()) })
  try {
    await authenticator.authenticate(request(`Bearer ${bearer}`))
    return true
  } catch (error) {
    if (error instanceof AuthenticationError) return false
    throw error
  }
}

test('S1 - the set is fetched once for many tokens, and kept', async () => {
  const server = await keyServer(keySet(OLD))
  const authenticator = open(server.url)
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => lets(authenticator, OLD)))
  expect(outcomes.every(Boolean)).toBe(true)
  expect(server.asked).toBe(1)
  expect(authenticator.told).toEqual([])
})

test('S1 - a token with an unknown key id causes one fetch of the set, and no further one soon after a fetch without success', async () => {
  const server = await keyServer(keySet(OLD))
  const authenticator = open(server.url, { cooldownMs: 60_000 })
  expect(await lets(authenticator, OLD)).toBe(true)
  server.serve(keySet(OLD, NEW))
  expect(await lets(authenticator, NEW)).toBe(true)
  expect(authenticator.told).toEqual(['changed'])
  const { asked } = server
  for (let i = 0; i < 5; i++) expect(await lets(authenticator, ecKey(`unknown ${i}`))).toBe(false)
  expect(server.asked).toBe(asked + 1)
})

test('S1 - after the cooldown an unknown key id is looked for again', async () => {
  const server = await keyServer(keySet(OLD))
  const authenticator = open(server.url)
  expect(await lets(authenticator, NEW)).toBe(false)
  server.serve(keySet(NEW))
  await expect.poll(() => lets(authenticator, NEW), { timeout: 20_000 }).toBe(true)
})

test('S1 - a key that was removed from the set no longer counts, and tokens verified with it are forgotten', async () => {
  const server = await keyServer(keySet(OLD))
  const authenticator = open(server.url, { maxAgeMs: 20, cooldownMs: 0 })
  const bearer = await token(OLD)
  await authenticator.authenticate(request(`Bearer ${bearer}`))
  server.serve(keySet(NEW))
  // A fetch under way when the answer changes may still bring the old set.
  await expect.poll(() => lets(authenticator, OLD)).toBe(false)
  await expect(async () => authenticator.authenticate(request(`Bearer ${bearer}`))).rejects.toThrow(AuthenticationError)
})

test('S1 - while the provider is down at the start no caller is admitted; requests succeed once it is up', async () => {
  const server = await keyServer(keySet(OLD))
  server.serve('', 503)
  const authenticator = open(server.url)
  expect(await lets(authenticator, OLD)).toBe(false)
  expect(authenticator.told).toEqual([`${server.url}: the server answered with status 503`])
  server.serve(keySet(OLD))
  await expect.poll(() => lets(authenticator, OLD), { timeout: 20_000 }).toBe(true)
})

test('S1 - a provider that does not answer is reported as such', async () => {
  const free = createServer()
  await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve))
  const address = free.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  await new Promise<void>((resolve) => free.close(() => resolve()))
  const authenticator = open(`http://127.0.0.1:${port}/`)
  expect(await lets(authenticator, OLD)).toBe(false)
  expect(authenticator.told).toEqual([`http://127.0.0.1:${port}/: the server cannot be reached (ECONNREFUSED)`])
})

test.each<[string, string, number]>([
  ['an error', 'oops', 500],
  ['a redirect', '', 302],
  ['garbage', '<html>', 200],
  ['JSON that is no key set', '{"keys":{}}', 200],
  ['more than is read', `{"keys":[]}${' '.repeat(1_100_000)}`, 200],
])('S1 - a server that later answers with %s is told of once, and the keys stay', async (_what, text, status) => {
  const server = await keyServer(keySet(OLD))
  // No cooldown: a fetch under way when the answer changes may still bring the old set.
  const authenticator = open(server.url, { maxAgeMs: 1, cooldownMs: 0, retryMs: 0 })
  expect(await lets(authenticator, OLD)).toBe(true)
  server.serve(text, status)
  await expect.poll(async () => (await lets(authenticator, OLD)) && authenticator.told).toHaveLength(1)
  const { asked } = server
  await expect.poll(async () => (await lets(authenticator, OLD)) && server.asked).toBeGreaterThan(asked + 2)
  expect(authenticator.told).toHaveLength(1)
  expect(await lets(authenticator, NEW)).toBe(false)
  expect(authenticator.told).toHaveLength(1)
})

test('S1 - a server that is slow is not waited for once keys are there', async () => {
  const server = await keyServer(keySet(OLD))
  const authenticator = open(server.url, { maxAgeMs: 1, cooldownMs: 0, retryMs: 60_000, timeoutMs: 1_000 })
  expect(await lets(authenticator, OLD)).toBe(true)
  server.answer = () => {}
  await pause(5)
  // The first to find the set too old waits as long as the server may take.
  expect(await lets(authenticator, OLD)).toBe(true)
  await expect
    .poll(async () => (await lets(authenticator, OLD)) && authenticator.told)
    .toEqual([`${server.url}: the server did not answer in time`])
  const { asked } = server
  const startedAt = performance.now()
  for (let i = 0; i < 20; i++) expect(await lets(authenticator, OLD)).toBe(true)
  expect(performance.now() - startedAt).toBeLessThan(20 * 1_000)
  expect(server.asked).toBe(asked)
})

test('S1 - a slow server at the start is waited for, and no longer than its time', async () => {
  const server = await keyServer(keySet(OLD))
  server.answer = () => {}
  const authenticator = open(server.url, { timeoutMs: 500, retryMs: 60_000 })
  expect(await lets(authenticator, OLD)).toBe(false)
  expect(authenticator.told).toEqual([`${server.url}: the server did not answer in time`])
  expect(await lets(authenticator, OLD)).toBe(false)
  expect(server.asked).toBe(1)
})
