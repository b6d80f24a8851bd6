import { expect, test } from 'vitest'

import { serve } from './support/server.ts'

const MIB = 1_048_576

/** What operators are told the store takes, in bytes. */
async function storeBytes(api: string): Promise<number> {
  const { data } = (await (await fetch(`${api}/api/snapshot`)).json()) as { data: { store: { bytes: number } } }
  return data.store.bytes
}

test('MGMT-9 - space of a queue that an operator purges is released, and the operator sees it', async () => {
  const { api, broker } = await serve()
  const { queues } = broker.as({ clientId: 'shop' })
  const body = new Uint8Array(MIB)
  for (let n = 0; n < 64; n++) await queues.send('large', { body })
  expect(await storeBytes(api.url)).toBeGreaterThan(64 * MIB)
  const purged = await fetch(`${api.url}/api/actions/purge_queue`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"channel":"large"}',
  })
  expect(await purged.json()).toMatchObject({ error: false })
  await expect.poll(() => storeBytes(api.url), { timeout: 45_000, interval: 250 }).toBeLessThan(40 * MIB)
})
