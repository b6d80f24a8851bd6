import { createBroker, encodeText } from '@signalbox/broker-core'
import { IdempotencyKeys, requestLog } from '@signalbox/broker-core/internal'
import type { ClaimedKey, KeyedRequest, KeyRecord } from '@signalbox/broker-core/internal'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, test } from 'vitest'

import { openNode, startServer } from './support/nodes.ts'

const DAY_MS = 86_400_000

const REQUEST: KeyedRequest = { kind: 'queries', target: 'c', callerId: 'ann', key: 'k', digest: 'd' }

/** The keys as two nodes see them. */
async function openTwo(): Promise<readonly [IdempotencyKeys, IdempotencyKeys]> {
  const server = await startServer()
  const open = async () => {
    const { system } = createBroker(await openNode(server))
    return new IdempotencyKeys(requestLog(system), DAY_MS)
  }
  return [await open(), await open()]
}

function isClaimed(outcome: ClaimedKey | KeyRecord): outcome is ClaimedKey {
  return 'release' in outcome
}

async function claim(keys: IdempotencyKeys, request = REQUEST): Promise<ClaimedKey> {
  const outcome = await keys.claim(request, 'run', 123)
  if (!isClaimed(outcome)) throw new Error('the key was claimed before')
  return outcome
}

describe.skipIf(NATS_SERVER === undefined)('idempotency keys', () => {
  test('idempotency keys - of claims on several nodes at the same time one wins', async () => {
    const nodes = await openTwo()
    for (let round = 0; round < 5; round++) {
      const request = { ...REQUEST, key: `k${round}` }
      const claims = nodes.flatMap((keys, node) => [1, 2, 3].map((n) => keys.claim(request, `run ${node}.${n}`)))
      const outcomes = await Promise.all(claims)
      expect(outcomes.filter(isClaimed)).toHaveLength(1)
      const runs = outcomes.flatMap((outcome) => (isClaimed(outcome) ? [] : [outcome.run]))
      expect(new Set(runs).size).toBe(1)
    }
  })

  test('idempotency keys - every node finds the answer', async () => {
    const [one, two] = await openTwo()
    const claimed = await claim(one)
    const running = { digest: 'd', run: 'run', until: 123 }
    expect(await two.claim(REQUEST, 'second')).toMatchObject({ ...running, answer: undefined })
    await claimed.answer({ body: encodeText('yes'), metadata: 'm', tags: { a: 'b' } })
    const answer = { body: encodeText('yes'), metadata: 'm', tags: { a: 'b' } }
    expect(await two.find(REQUEST)).toMatchObject({ ...running, answer })
    expect(await two.claim(REQUEST, 'third')).toMatchObject({ ...running, answer })
  })

  test('idempotency keys - a released key can be claimed on another node', async () => {
    const [one, two] = await openTwo()
    for (const keys of [one, two, one]) {
      const claimed = await claim(keys)
      await claimed.release()
      expect(await two.find(REQUEST)).toBeUndefined()
    }
  })
})
