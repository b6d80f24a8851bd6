import { createBroker, encodeText } from '@signalbox/broker-core'
import type { BrokerHandle } from '@signalbox/broker-core'
import { digestOf, IdempotencyKeys, isIdempotencyKey, requestLog } from '@signalbox/broker-core/internal'
import type { ClaimedKey, KeyedRequest, KeyRecord } from '@signalbox/broker-core/internal'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { expect, onTestFinished, test } from 'vitest'

const DAY_MS = 86_400_000

const REQUEST: KeyedRequest = { kind: 'queries', target: 'c', callerId: 'ann', key: 'k', digest: digestOf('event') }

async function openSystem(path = testFolder()): Promise<{ system: BrokerHandle; close: () => Promise<void> }> {
  const engine = await openEmbeddedEngine({ path })
  onTestFinished(() => engine.close())
  return { system: createBroker(engine).system, close: () => engine.close() }
}

async function openKeys(keepMs = DAY_MS): Promise<IdempotencyKeys> {
  const { system } = await openSystem()
  return new IdempotencyKeys(requestLog(system), keepMs)
}

function isClaimed(outcome: ClaimedKey | KeyRecord): outcome is ClaimedKey {
  return 'release' in outcome
}

async function claim(keys: IdempotencyKeys, request = REQUEST, until?: number): Promise<ClaimedKey> {
  const outcome = await keys.claim(request, 'run', until)
  if (!isClaimed(outcome)) throw new Error('the key was claimed before')
  return outcome
}

test('idempotency keys - a claimed key gives the record of its request', async () => {
  const keys = await openKeys()
  expect(await keys.find(REQUEST)).toBeUndefined()
  await claim(keys)
  const record = { digest: REQUEST.digest, run: 'run', answer: undefined, until: undefined }
  expect(await keys.claim({ ...REQUEST, digest: 'other' }, 'second')).toMatchObject(record)
  expect(await keys.find(REQUEST)).toMatchObject(record)
})

test('idempotency keys - a key belongs to one kind, target and caller', async () => {
  const keys = await openKeys()
  await claim(keys)
  for (const other of [{ kind: 'commands' }, { target: 'd' }, { callerId: 'bob' }, { key: 'l' }]) {
    expect(isClaimed(await keys.claim({ ...REQUEST, ...other }, 'run'))).toBe(true)
  }
})

test('idempotency keys - of claims at the same time one wins', async () => {
  const keys = await openKeys()
  for (let round = 0; round < 5; round++) {
    const request = { ...REQUEST, key: `k${round}` }
    const outcomes = await Promise.all(Array.from({ length: 8 }, (_, i) => keys.claim(request, `run ${i}`)))
    const winners = outcomes.flatMap((outcome, i) => (isClaimed(outcome) ? [`run ${i}`] : []))
    expect(winners).toHaveLength(1)
    expect(outcomes.filter((outcome) => !isClaimed(outcome))).toEqual(
      Array(7).fill(expect.objectContaining({ run: winners[0] })),
    )
  }
})

test('idempotency keys - an answer and the end of the request are in the record, also after a restart', async () => {
  const folder = testFolder()
  const before = await openSystem(folder)
  const end = Date.now() + 60_000
  const claimed = await claim(new IdempotencyKeys(requestLog(before.system), DAY_MS), REQUEST, end)
  await claimed.answer({ body: encodeText('yes'), metadata: 'm', tags: { a: 'b' } })
  await before.close()
  const after = await openSystem(folder)
  expect(await new IdempotencyKeys(requestLog(after.system), DAY_MS).claim(REQUEST, 'second')).toMatchObject({
    run: 'run',
    until: end,
    answer: { body: encodeText('yes'), metadata: 'm', tags: { a: 'b' } },
  })
})

test('idempotency keys - an answer has no tags but its own', async () => {
  const keys = await openKeys()
  await (await claim(keys, REQUEST, Date.now())).answer({ body: '', tags: { a: 'b' } })
  expect((await keys.find(REQUEST))?.answer?.tags).toEqual({ a: 'b' })
})

test('idempotency keys - a released key can be claimed again, repeatedly', async () => {
  const keys = await openKeys()
  for (let round = 0; round < 3; round++) {
    const claimed = await claim(keys)
    await claimed.release()
    expect(await keys.find(REQUEST)).toBeUndefined()
  }
})

test('idempotency keys - a key can be claimed again after its time, and the first request cannot change it any more', async () => {
  const keys = await openKeys(50)
  const first = await claim(keys)
  await until(async () => (await keys.find(REQUEST)) === undefined)
  await claim(keys, { ...REQUEST, digest: 'new' })
  await first.answer({ body: 'late' })
  await first.release()
  expect((await keys.find(REQUEST)) ?? { digest: 'new', answer: undefined }).toMatchObject({
    digest: 'new',
    answer: undefined,
  })
})

test('idempotency keys - a key is kept while its request may run', async () => {
  const keys = await openKeys(1)
  const end = Date.now() + 300
  await claim(keys, REQUEST, end)
  await until(async () => (await keys.find(REQUEST)) === undefined)
  expect(Date.now()).toBeGreaterThan(end)
})

test('idempotency keys - a key has 1 to 255 visible ASCII characters', () => {
  for (const key of ['!', '~', 'x'.repeat(255)]) expect(isIdempotencyKey(key)).toBe(true)
  for (const key of ['', ' ', 'a b', 'é', '\u007f', '\n', 'x\n', 'x'.repeat(256)]) {
    expect(isIdempotencyKey(key)).toBe(false)
  }
})
